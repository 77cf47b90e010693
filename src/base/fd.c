/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

int silt_fd_nonblock(int fd, struct silt_error *e)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return silt_fail_errno(e, "make descriptor non-blocking");
    return 0;
}

int silt_fd_write_all(int fd, silt_slice bytes, struct silt_error *e)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.data, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "write");
        bytes.data += n;
        bytes.len -= (size_t)n;
    }
    return 0;
}

int silt_fd_read_file(int dir, const char *path, size_t max, char **ret, size_t *ret_len,
                      struct silt_error *e)
{
    silt_auto_fd fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", path);
    silt_auto_free char *data = malloc(max + 1);
    if (data == NULL)
        return silt_fail(e, SILT_LIMIT, "no memory for %s", path);
    size_t len = 0;
    for (;;) {
        ssize_t n = read(fd, data + len, max + 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "read %s", path);
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return silt_fail(e, SILT_LIMIT, "%s is larger than %zu bytes", path, max);
    }
    data[len] = 0;
    *ret_len = len;
    *ret = silt_take_ptr(data);
    return 0;
}

int silt_fd_put(int dir, const char *path, const char *text, struct silt_error *e)
{
    silt_auto_fd fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s", path);
    if (write(fd, text, strlen(text)) < 0)
        return silt_fail_errno(e, "write %s to %s", text, path);
    return 0;
}

int silt_fd_seal(silt_slice bytes, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return silt_fail_errno(e, "create memfd");
    if (silt_fd_write_all(fd, bytes, e) < 0)
        return -1;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return silt_fail_errno(e, "seal memfd");
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_fd_map_sealed(int fd, size_t max, silt_slice *ret, struct silt_error *e)
{
    const int needed = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed || fstat(fd, &st) < 0)
        return silt_fail(e, SILT_PROTOCOL, "a descriptor that is no sealed memfd");
    if (st.st_size <= 0 || (uint64_t)st.st_size > max)
        return silt_fail(e, SILT_LIMIT, "a memfd of %lld bytes, at most %zu", (long long)st.st_size,
                         max);
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return silt_fail_errno(e, "read a sealed memfd");
    *ret = (silt_slice){bytes, (size_t)st.st_size};
    return 0;
}

void silt_fd_unmap(silt_slice bytes)
{
    union {
        const char *theirs;
        void *ours;
    } at = {bytes.data};
    (void)munmap(at.ours, bytes.len);
}

int silt_fd_pair(int type, int ret_pair[2], struct silt_error *e)
{
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret_pair) < 0)
        return silt_fail_errno(e, "create socket pair");
    return 0;
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void silt_fd_refuse_fds(int sock)
{
    if (!silt_without("passrights"))
        (void)setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
}

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * SILT_FDS_MAX)];
};

int silt_fd_send(int sock, const struct silt_parcel *p, struct silt_error *e)
{
    struct iovec iov = {.iov_base = p->data, .iov_len = p->len};
    union control control = {0};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (p->nfds > 0) {
        size_t size = sizeof(int) * (size_t)p->nfds;
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(c), p->fds, size);
    }
    ssize_t n;
    do
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return silt_fail_errno(e, "send message");
    return 0;
}

enum { KERNEL_FDS_MAX = 253 }; /* SCM_MAX_FD */

/* Large enough for every descriptor that one message can carry: the kernel would close the rest in
 * our process, and a sender can make that close slow. */
union foreign_control {
    struct cmsghdr align;
    char room[CMSG_SPACE(sizeof(int) * KERNEL_FDS_MAX)];
};

static void close_foreign(int fd)
{
    const struct linger off = {0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
    (void)close(fd);
}

/* Returns whether all descriptors fit into the parcel; closes the rest. */
static bool take_fds(struct silt_parcel *p, struct msghdr *m)
{
    bool fit = true;
    p->nfds = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (p->nfds < SILT_FDS_MAX) {
                p->fds[p->nfds++] = fd;
            } else {
                close_foreign(fd);
                fit = false;
            }
        }
    }
    return fit;
}

int silt_fd_recv(int sock, struct silt_parcel *p, struct silt_error *e)
{
    struct iovec iov = {.iov_base = p->data, .iov_len = p->len};
    union foreign_control control;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    ssize_t n;
    p->nfds = 0;
    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return silt_fail_errno(e, "receive message");
    if (!take_fds(p, &m) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        silt_parcel_close(p);
        return silt_fail(e, SILT_PROTOCOL,
                         "message larger than %zu bytes or with more than %d descriptors", p->len,
                         SILT_FDS_MAX);
    }
    p->len = (size_t)n;
    return n == 0 ? 0 : 1;
}

void silt_parcel_close(struct silt_parcel *p)
{
    for (int i = 0; i < p->nfds; i++)
        if (p->fds[i] >= 0)
            close_foreign(p->fds[i]);
    p->nfds = 0;
}

static bool is_packets(int fd)
{
    int domain = 0, got = 0;
    socklen_t size = sizeof(int);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX
           && getsockopt(fd, SOL_SOCKET, SO_TYPE, &got, &size) == 0 && got == SOCK_SEQPACKET;
}

static bool is_pipe(int fd, int mode)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & (O_ACCMODE | O_PATH)) == mode && fstat(fd, &st) == 0
           && S_ISFIFO(st.st_mode);
}

int silt_fd_check(int fd, enum silt_fd_kind kind, struct silt_error *e)
{
    switch (kind) {
    case SILT_FD_READ:
        return is_pipe(fd, O_RDONLY)
                   ? 0
                   : silt_fail(e, SILT_PROTOCOL, "a descriptor is not the reading end of a pipe");
    case SILT_FD_WRITE:
        return is_pipe(fd, O_WRONLY)
                   ? 0
                   : silt_fail(e, SILT_PROTOCOL, "a descriptor is not the writing end of a pipe");
    case SILT_FD_PACKETS:
        return is_packets(fd)
                   ? 0
                   : silt_fail(e, SILT_PROTOCOL, "a descriptor is not a unix socket of packets");
    }
    return silt_fail(e, SILT_INTERNAL, "no kind of descriptor");
}
