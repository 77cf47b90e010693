/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/relay.h"
#include "base/fd.h"
#include "base/parent.h"
#include "cli/core/wait.h"
#include "http/tls.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 256 << 10, OUT_MAX = 4 << 20 };

struct relay {
    int net, plain;
    struct silt_tls *tls;
    struct silt_buf out;     /* to the network */
    struct silt_buf arrived; /* plain bytes for the client */
    bool said_all;           /* the client writes no more */
    bool heard_all;          /* the server writes no more */
};

/* -1: the other side is gone. */
static int send_some(int fd, struct silt_buf *b)
{
    ssize_t n = b->len > 0 ? send(fd, b->data, b->len, MSG_NOSIGNAL) : 0;
    if (n > 0)
        silt_buf_drop(b, (size_t)n);
    return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

/* Everything that these received bytes hold. */
static void decrypt(struct relay *r, silt_slice wire)
{
    for (;;) {
        char *room = silt_buf_room(&r->arrived, PIECE);
        ssize_t n = room != NULL ? silt_tls_read(r->tls, &wire, room, PIECE) : -1;
        if (n <= 0) {
            r->heard_all = r->heard_all || n == 0 || errno != EAGAIN;
            return;
        }
        r->arrived.len += (size_t)n;
    }
}

static int receive(struct relay *r)
{
    static char piece[PIECE];
    ssize_t n = recv(r->net, piece, sizeof(piece), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        r->heard_all = true; /* without TLS's own end: a body with a length shows what is missing */
    else
        decrypt(r, (silt_slice){piece, (size_t)n});
    return 0;
}

static int shake(struct relay *r, const char *host, int timeout_ms, struct silt_error *e)
{
    short ready;
    decrypt(r, (silt_slice){NULL, 0});
    while (!silt_tls_is_open(r->tls)) {
        short events = r->out.len > 0 ? POLLIN | POLLOUT : POLLIN;
        if (silt_tls_is_broken(r->tls) || r->heard_all) {
            const char *why = silt_tls_distrust(r->tls);
            (void)send_some(r->net, &r->out); /* the alert */
            return silt_fail(e, SILT_DENIED, "https of %s: %s%s", host,
                             why != NULL ? why : "the server does not speak TLS",
                             why != NULL ? "\nsilt login --ca FILE names its authority" : "");
        }
        if (silt_wait_for(r->net, events, timeout_ms, &ready, e) < 0)
            return silt_because(e, "https of %s", host);
        if (send_some(r->net, &r->out) < 0)
            r->heard_all = true;
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0 && receive(r) < 0)
            return -1;
    }
    return 0;
}

static int take_plain(struct relay *r)
{
    static char piece[PIECE];
    ssize_t n = recv(r->plain, piece, sizeof(piece), 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) {
        r->said_all = true;
        silt_tls_end(r->tls);
        return 0;
    }
    return silt_tls_write(r->tls, (silt_slice){piece, (size_t)n});
}

/* A side that does not read holds the other one back. */
static int pass_once(struct relay *r)
{
    bool takes = !r->said_all && r->out.len < OUT_MAX / 2;
    bool reads = !r->heard_all && r->arrived.len < OUT_MAX / 2;
    struct pollfd p[] = {
        {.fd = r->net, .events = (short)((reads ? POLLIN : 0) | (r->out.len > 0 ? POLLOUT : 0))},
        {.fd = r->plain,
         .events = (short)((takes ? POLLIN : 0) | (r->arrived.len > 0 ? POLLOUT : 0))}};
    if (poll(p, 2, -1) < 0)
        return errno == EINTR ? 0 : -1;
    if (reads && (p[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && receive(r) < 0)
        return -1;
    if (takes && (p[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && take_plain(r) < 0)
        return -1;
    return send_some(r->net, &r->out) < 0 || send_some(r->plain, &r->arrived) < 0 ? -1 : 0;
}

static void pass(struct relay *r)
{
    while ((!r->heard_all || r->arrived.len > 0) && !(r->said_all && r->out.len == 0))
        if (pass_once(r) < 0)
            return;
}

static int spawn(struct relay *r, int ends[2], int *ret_fd, pid_t *ret_pid, struct silt_error *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork");
    if (pid == 0) {
        (void)close(ends[0]);
        r->plain = ends[1];
        pass(r);
        _exit(0);
    }
    *ret_pid = pid;
    *ret_fd = ends[0];
    ends[0] = -1;
    return 0;
}

int silt_relay_start(int fd, const char *host, const char *authorities, int timeout_ms, int *ret_fd,
                     pid_t *ret_pid, struct silt_error *e)
{
    silt_auto_fd net = fd;
    struct relay r = {.net = net};
    int pair[2];
    silt_buf_init(&r.out, OUT_MAX);
    silt_buf_init(&r.arrived, OUT_MAX);
    if (silt_tls_dial(host, authorities, &r.out, &r.tls, e) < 0)
        return -1;
    int got = shake(&r, host, timeout_ms, e);
    if (got == 0)
        got = silt_fd_pair(SOCK_STREAM, pair, e);
    if (got == 0) {
        got = silt_fd_nonblock(pair[0], e) < 0 || silt_fd_nonblock(pair[1], e) < 0
                  ? -1
                  : spawn(&r, pair, ret_fd, ret_pid, e);
        silt_close_fd(&pair[0]);
        silt_close_fd(&pair[1]);
    }
    silt_tls_free(r.tls);
    silt_buf_fini(&r.out);
    silt_buf_fini(&r.arrived);
    return got;
}
