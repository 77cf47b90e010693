/* SPDX-License-Identifier: Apache-2.0 */
/* fd: small deeds with descriptors: whole reads and writes, socket pairs, and one datagram with
 * descriptors riding along. */
#pragma once

#include "base/error.h"
#include "base/own.h"
#include "base/slice.h"

#include <stdint.h>
#include <sys/types.h>

enum { SILT_FDS_MAX = 32 }; /* descriptors in one message */

int silt_fd_nonblock(int fd, struct silt_error *e);
int silt_fd_write_all(int fd, silt_slice bytes, struct silt_error *e); /* blocking fd */
/* Reads to the end, at most `max` bytes; terminates; *ret is the caller's (free). */
int silt_fd_read_file(int dir, const char *path, size_t max, char **ret, size_t *ret_len,
                      struct silt_error *e);
/* Opens, writes in one write, closes: cgroup and proc files. */
int silt_fd_put(int dir, const char *path, const char *text, struct silt_error *e);
int silt_fd_pair(int type, int ret_pair[2], struct silt_error *e); /* AF_UNIX, close-on-exec */
/* Nobody may send descriptors to this socket: whoever tries gets EPERM. One that came would be closed by us, and the
 * last close of a TCP socket waits as long as its owner likes (SO_LINGER). Kernels before 6.16 cannot refuse them. */
void silt_fd_refuse_fds(int sock);

/* What a descriptor from somebody else must be. */
enum silt_fd_kind {
    SILT_FD_READ,    /* the end of a pipe that is read */
    SILT_FD_WRITE,   /* that is written */
    SILT_FD_PACKETS, /* an AF_UNIX socket, SOCK_SEQPACKET */
};
/* SILT_PROTOCOL: it is something else. */
int silt_fd_check(int fd, enum silt_fd_kind kind, struct silt_error *e);

/* One message on a seqpacket socket. Sending answers 0, or -1 with e->sys == EAGAIN when full. */
struct silt_parcel {
    void *data; /* borrowed */
    size_t len; /* receiving: in = room, out = size of the message */
    int fds[SILT_FDS_MAX];
    int nfds;
};
int silt_fd_send(int sock, const struct silt_parcel *p, struct silt_error *e);
/* 1: a message; 0: the peer closed; -1: error (EAGAIN in e->sys when there is nothing). Received
 * descriptors are close-on-exec and the caller's. A message larger than the room, or with more descriptors, is
 * SILT_PROTOCOL. */
int silt_fd_recv(int sock, struct silt_parcel *p, struct silt_error *e);
/* Closes the descriptors that were not taken. Sockets are told not to linger before: whoever sent one shall not choose
 * how long our close takes. */
void silt_parcel_close(struct silt_parcel *p);
