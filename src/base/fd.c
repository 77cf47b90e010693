/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/without.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
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

static void take_fds(struct silt_parcel *p, struct msghdr *m)
{
    p->nfds = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        p->nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(p->fds, CMSG_DATA(c), sizeof(int) * (size_t)p->nfds);
    }
}

int silt_fd_recv(int sock, struct silt_parcel *p, struct silt_error *e)
{
    struct iovec iov = {.iov_base = p->data, .iov_len = p->len};
    union control control;
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
    take_fds(p, &m);
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        silt_parcel_close(p);
        return silt_fail(e, SILT_PROTOCOL, "message larger than %zu bytes", p->len);
    }
    p->len = (size_t)n;
    return n == 0 ? 0 : 1;
}

void silt_parcel_close(struct silt_parcel *p)
{
    for (int i = 0; i < p->nfds; i++)
        silt_close_fd(&p->fds[i]);
    p->nfds = 0;
}
