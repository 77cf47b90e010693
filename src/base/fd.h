/* SPDX-License-Identifier: Apache-2.0 */
/* fd: helpers for descriptors: whole reads and writes, sealed memory files, socket pairs, and
 * messages that carry descriptors. */
#pragma once

#include "base/error.h"
#include "base/own.h"
#include "base/slice.h"

#include <stdint.h>
#include <sys/types.h>

enum { SILT_FDS_MAX = 32 }; /* descriptors in one message */

int silt_fd_nonblock(int fd, struct silt_error *e);
int silt_fd_write_all(int fd, silt_slice bytes, struct silt_error *e); /* blocking fd */
/* Reads a whole file of at most `max` bytes and adds a NUL. The caller frees *ret. */
int silt_fd_read_file(int dir, const char *path, size_t max, char **ret, size_t *ret_len,
                      struct silt_error *e);
/* Opens, writes with one write(2), closes: for files of cgroups and /proc. */
int silt_fd_put(int dir, const char *path, const char *text, struct silt_error *e);
/* Creates a memfd with these bytes, sealed against any change. */
int silt_fd_seal(silt_slice bytes, int *ret_fd, struct silt_error *e);
/* Maps such a memfd of another process until silt_fd_unmap. SILT_PROTOCOL: it is not sealed;
 * SILT_LIMIT: it is empty or larger than `max`. */
int silt_fd_map_sealed(int fd, size_t max, silt_slice *ret, struct silt_error *e);
void silt_fd_unmap(silt_slice bytes);
int silt_fd_pair(int type, int ret_pair[2], struct silt_error *e); /* AF_UNIX, close-on-exec */
/* Makes the kernel refuse descriptors sent to this socket: the sender gets EPERM. We would have to
 * close them, and the last close of a TCP socket blocks as long as its owner likes (SO_LINGER).
 * Kernels before 6.16 cannot refuse them. */
void silt_fd_refuse_fds(int sock);

/* The type that a descriptor from another process must have. */
enum silt_fd_kind {
    SILT_FD_READ,    /* the read end of a pipe */
    SILT_FD_WRITE,   /* the write end */
    SILT_FD_PACKETS, /* an AF_UNIX socket, SOCK_SEQPACKET */
};
/* SILT_PROTOCOL: another type. */
int silt_fd_check(int fd, enum silt_fd_kind kind, struct silt_error *e);

/* One message on a seqpacket socket. Sending returns 0, or -1 with e->sys == EAGAIN if the socket
 * is full. */
struct silt_parcel {
    void *data; /* borrowed */
    size_t len; /* receiving: in = room, out = size of the message */
    int fds[SILT_FDS_MAX];
    int nfds;
};
int silt_fd_send(int sock, const struct silt_parcel *p, struct silt_error *e);
/* 1: a message; 0: the peer closed; -1: error (e->sys is EAGAIN if there is no message). The caller
 * owns the received descriptors, which are close-on-exec. SILT_PROTOCOL: the message is larger than
 * the parcel or has too many descriptors. */
int silt_fd_recv(int sock, struct silt_parcel *p, struct silt_error *e);
/* Closes the descriptors that the caller did not take. Turns off SO_LINGER first: the sender must
 * not decide how long our close takes. */
void silt_parcel_close(struct silt_parcel *p);
