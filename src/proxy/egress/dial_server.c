/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/egress/dial_server.h"
#include "base/fd.h"
#include "proxy/core/confine.h"
#include "wire/dial.h"
#include "wire/super.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* Sends fewer than requested if the channel is full: the peer asks again. */
static void make(uint32_t family, uint32_t count, struct silt_parcel *out)
{
    for (uint32_t i = 0; i < count; i++) {
        int fd = socket((int)family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return;
        out->fds[out->nfds++] = fd;
    }
}

/* false: the peer is gone or sends garbage. */
static bool serve(int channel)
{
    struct silt_dial_request q;
    struct silt_dial_answer a;
    struct silt_parcel in = {.data = &q, .len = sizeof(q)}, out = {.data = &a, .len = sizeof(a)};
    struct silt_error e;
    int got = silt_fd_recv(channel, &in, &e);
    if (got < 0 && e.sys == EAGAIN)
        return true;
    silt_parcel_close(&in);
    if (got <= 0 || in.len != sizeof(q) || (q.family != AF_INET && q.family != AF_INET6)
        || q.count > SILT_DIAL_MAX)
        return false;
    make(q.family, q.count, &out);
    a = (struct silt_dial_answer){.family = q.family, .count = (uint32_t)out.nfds};
    got = silt_fd_send(channel, &out, &e);
    silt_parcel_close(&out);
    return got == 0;
}

/* 1: a message from silt-super; 0: it is gone. */
static int hear(int *channel, struct silt_error *e)
{
    struct silt_super_note note;
    struct silt_parcel in = {.data = &note, .len = sizeof(note)};
    int got = silt_fd_recv(SILT_SUPER_FD_CHANNEL, &in, e);
    if (got > 0 && in.len == sizeof(note) && note.type == SILT_SUPER_PEER
        && note.key == SILT_SUPER_PAIR_DIAL && in.nfds == 1) {
        silt_close_fd(channel);
        *channel = silt_take_fd(&in.fds[0]);
    }
    silt_parcel_close(&in);
    return got;
}

int silt_dial_run(struct silt_error *e)
{
    silt_auto_fd channel = -1;
    if (silt_dial_confine(e) < 0)
        return -1;
    for (;;) {
        struct pollfd p[2] = {{.fd = SILT_SUPER_FD_CHANNEL, .events = POLLIN},
                              {.fd = channel, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return silt_fail_errno(e, "wait");
        if (p[1].revents != 0 && !serve(channel))
            silt_close_fd(&channel); /* silt-super sends a new one */
        if (p[0].revents != 0 && hear(&channel, e) <= 0)
            return 0;
    }
}
