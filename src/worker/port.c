/* SPDX-License-Identifier: Apache-2.0 */
/* port: waits until a service in the sandbox accepts connections on a loopback port. The kernel
 * does not announce new listeners, so we poll by connecting, which takes microseconds if there is
 * none. */
#include "base/clock.h"
#include "worker/answer.h"
#include "worker/ops.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    LISTEN_EVERY_MS = 10,
    PROBE_MS = 5000, /* for one connection, or one request with its redirects */
    REDIRECTS_MAX = 5,
};

struct probe {
    struct silt_task *task; /* borrowed */
    struct silt_worker_port how;
    uint16_t port;
    int64_t by_ms; /* timeout of this attempt */
};

enum found { ABSENT, WRONG, RIGHT, LEFT };

/* Waits until the descriptor is ready. False: timeout, or siltd is gone. */
static bool await(struct probe *p, int fd, short events)
{
    struct pollfd polls[] = {{.fd = p->task->sock, .events = 0}, {.fd = fd, .events = events}};
    int64_t left = p->by_ms - silt_clock_ms();
    int n = left > 0 ? poll(polls, fd >= 0 ? 2 : 1, (int)left) : 0;
    if (n > 0 && polls[0].revents != 0)
        p->task->gone = true;
    return !p->task->gone && n > 0;
}

static void pause_ms(struct probe *p, int64_t ms)
{
    p->by_ms = silt_clock_ms() + ms;
    (void)await(p, -1, 0);
}

/* A socket whose source port is the target port is connected to itself. */
static bool is_self(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t a = sizeof(here), b = sizeof(there);
    return getsockname(fd, (struct sockaddr *)&here, &a) < 0
           || getpeername(fd, (struct sockaddr *)&there, &b) < 0
           || (a == b && memcmp(&here, &there, a) == 0);
}

static int connect_to(struct probe *p, const struct sockaddr *to, socklen_t size)
{
    int status = 0;
    socklen_t len = sizeof(status);
    silt_auto_fd fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, to, size) < 0) {
        if (errno != EINPROGRESS || !await(p, fd, POLLOUT)
            || getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &len) < 0 || status != 0)
            return -1;
    }
    return is_self(fd) ? -1 : silt_take_fd(&fd);
}

static int connect_any(struct probe *p)
{
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(p->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(p->port), .sin6_addr = {{{0}}}};
    six.sin6_addr.s6_addr[15] = 1;
    int fd = connect_to(p, (const struct sockaddr *)&four, sizeof(four));
    return fd >= 0 ? fd : connect_to(p, (const struct sockaddr *)&six, sizeof(six));
}

static bool send_all(struct probe *p, int fd, silt_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && (errno != EAGAIN || !await(p, fd, POLLOUT)))
            return false;
        if (n > 0)
            bytes = (silt_slice){bytes.data + n, bytes.len - (size_t)n};
    }
    return true;
}

/* Reads the response's header, as far as it fits. */
static bool receive_head(struct probe *p, int fd, struct silt_answer *ret)
{
    static char head[16384];
    size_t len = 0;
    while (len < sizeof(head)) {
        ssize_t n = recv(fd, head + len, sizeof(head) - len, 0);
        if (n == 0 || (n < 0 && (errno != EAGAIN || !await(p, fd, POLLIN))))
            return false;
        if (n < 0)
            continue;
        len += (size_t)n;
        int got = silt_answer_read((silt_slice){head, len}, ret);
        if (got != 0)
            return got > 0;
    }
    return false;
}

static bool ask(struct probe *p, int fd, const char *target, struct silt_answer *ret)
{
    static char head[SILT_TARGET_SIZE + 256];
    int n = snprintf(head, sizeof(head),
                     "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: silt\r\nAccept: */*\r\n"
                     "Connection: close\r\n\r\n",
                     target, p->port);
    return send_all(p, fd, (silt_slice){head, (size_t)n}) && receive_head(p, fd, ret);
}

/* Sends one request and follows its redirects. */
static enum found ask_http(struct probe *p, int first, uint32_t *ret_status)
{
    static char target[SILT_TARGET_SIZE];
    silt_slice path = {p->task->text.data + sizeof(p->how), p->task->text.len - sizeof(p->how)};
    struct silt_answer answer = {0};
    silt_auto_fd fd = first;
    if (!silt_target_of(path, target))
        return WRONG;
    for (int i = 0;; i++) {
        if (!ask(p, fd, target, &answer))
            return p->task->gone ? LEFT : WRONG;
        if (i == REDIRECTS_MAX || !silt_answer_redirect(&answer, p->port, target))
            break;
        silt_close_fd(&fd);
        fd = connect_any(p);
        if (fd < 0)
            return WRONG;
    }
    *ret_status = answer.status;
    return answer.status >= p->how.status_min && answer.status <= p->how.status_max ? RIGHT : WRONG;
}

static enum found try(struct probe *p, uint32_t *ret_status)
{
    p->by_ms = silt_clock_ms() + PROBE_MS;
    silt_auto_fd fd = connect_any(p);
    if (p->task->gone)
        return LEFT;
    if (fd < 0)
        return ABSENT;
    if (!p->how.http)
        return RIGHT;
    return ask_http(p, silt_take_fd(&fd), ret_status);
}

int silt_task_port(struct silt_task *t, struct silt_error *e)
{
    struct probe p = {.task = t, .port = (uint16_t)t->ask.mode};
    struct silt_worker_done done = {0};
    enum found found = ABSENT;
    if (t->ask.mode == 0 || t->ask.mode > UINT16_MAX || t->text.len < sizeof(p.how))
        return silt_fail(e, SILT_PROTOCOL, "port %u", t->ask.mode);
    memcpy(&p.how, t->text.data, sizeof(p.how));
    while (!t->gone && found != RIGHT) {
        found = try(&p, &done.status);
        if (found == ABSENT)
            pause_ms(&p, LISTEN_EVERY_MS);
        else if (found == WRONG)
            pause_ms(&p, p.how.interval_ms > LISTEN_EVERY_MS ? p.how.interval_ms : LISTEN_EVERY_MS);
    }
    if (!t->gone)
        (void)silt_task_done(t, &done);
    return 0;
}
