/* SPDX-License-Identifier: Apache-2.0 */
/* channel: frames between siltd and one silt-init. Input is untrusted: sizes are checked here,
 * numbers where they are used, and one loop turn handles a bounded number of frames. */
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/facet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { FRAMES_PER_TURN = 16, UNSENT_MAX = 8 << 20, ENDING_MS = 1000 };

struct unsent {
    struct silt_link link;
    size_t len;
    int fds[SILT_FDS_MAX];
    int nfds;
    int error; /* errno: its descriptors could not be duplicated, so it fails; 0: none */
    struct silt_frame frame;
};

static const size_t say_min[SILT_AGENT_SAY_MAX] = {
    [SILT_AGENT_WELCOME] = sizeof(uint64_t),
    [SILT_AGENT_READY] = sizeof(uint64_t),
    [SILT_AGENT_SESSION_INFO] = sizeof(struct silt_agent_session_info),
    [SILT_AGENT_EXEC_INFO] = sizeof(struct silt_agent_exec_info),
    [SILT_AGENT_OPENED] = sizeof(int32_t),
    [SILT_AGENT_DIED] = sizeof(struct silt_agent_end),
    [SILT_AGENT_STARTED] = sizeof(int32_t),
    [SILT_AGENT_ENDED] = sizeof(struct silt_agent_end),
    [SILT_AGENT_FAILED] = sizeof(struct silt_error),
    [SILT_AGENT_LOGGED] = sizeof(struct silt_agent_logged),
    [SILT_AGENT_STDIN_TAKEN] = sizeof(uint64_t),
    [SILT_AGENT_FOUND] = sizeof(struct silt_agent_found),
    [SILT_AGENT_SWEPT] = sizeof(struct silt_agent_swept),
};

/* One buffer for all channels: each frame is handled before the next is read. */
static union {
    struct silt_frame frame;
    char bytes[SILT_FRAME_MAX];
} incoming;

static bool is_our_epoch(struct silt_sandbox *s, const struct silt_frame *f)
{
    uint64_t epoch;
    memcpy(&epoch, f->body, sizeof(epoch));
    return epoch == s->registry->epoch;
}

static void tell_facets(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    const struct silt_facets *facets = s->registry->facets;
    for (size_t i = 0; i < facets->count; i++)
        if ((facets->of[i]->frames & SILT_FRAME_OF(f->type)) != 0)
            facets->of[i]->on_frame(s, f, body_len);
}

static void deal_with(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    s->channel.heard_ms = s->registry->loop->now_ms;
    s->channel.pinged = false;
    if (f->type == 0 || f->type >= SILT_AGENT_SAY_MAX || body_len < say_min[f->type]) {
        silt_sandbox_on_lost(s, "the agent broke the protocol");
        return;
    }
    if (f->type == SILT_AGENT_WELCOME) {
        s->channel.welcome = s->channel.welcome || is_our_epoch(s, f);
        return;
    }
    if (!s->channel.welcome)
        return;
    if (f->type == SILT_AGENT_READY)
        silt_sandbox_on_hello_done(s);
    else if (f->type == SILT_AGENT_NEED_HANDLES)
        silt_sandbox_on_need_handles(s, f->flags);
    else
        tell_facets(s, f, body_len);
}

/* Transient send errors: queue the frame. Any other means that silt-init is gone. */
static bool will_pass(int sys)
{
    return sys == EAGAIN || sys == ENOBUFS || sys == ENOMEM || sys == ETOOMANYREFS;
}

static void send_unsent(struct silt_sandbox *s);

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct silt_sandbox *s = silt_outer(w, struct silt_sandbox, channel.watch);
    if (s->channel.stuck) {
        silt_sandbox_on_lost(s, "the agent does not read its channel");
        return;
    }
    if (events & EPOLLOUT)
        send_unsent(s);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    for (int i = 0; i < FRAMES_PER_TURN && s->channel.watch.fd >= 0; i++) {
        struct silt_error e;
        struct silt_parcel p = {.data = incoming.bytes, .len = sizeof(incoming.bytes)};
        int got = silt_fd_recv(s->channel.watch.fd, &p, &e);
        if (got < 0 && e.sys == EAGAIN)
            return;
        silt_parcel_close(&p); /* we expect no descriptors from silt-init */
        if (got <= 0) {        /* silt-init is exiting; its pidfd will report how */
            silt_loop_forget(s->registry->loop, w);
            silt_loop_after(s->registry->loop, &s->channel.ending, ENDING_MS);
            return;
        }
        if (p.len < sizeof(struct silt_frame)) {
            silt_sandbox_on_lost(s, "the agent broke the protocol");
            return;
        }
        deal_with(s, &incoming.frame, p.len - sizeof(struct silt_frame));
    }
}

static void on_pidfd(struct silt_watch *w, uint32_t events)
{
    struct silt_sandbox *s = silt_outer(w, struct silt_sandbox, channel.pidfd);
    (void)events;
    silt_sandbox_on_lost(s, "the sandbox's first process ended");
}

static void on_ending(struct silt_timer *t)
{
    silt_sandbox_on_lost(silt_outer(t, struct silt_sandbox, channel.ending),
                         "the agent closed its channel");
}

/* A stopped or hung agent would block its callers for ever. After half the deadline without a frame
 * it is pinged and has the other half to answer. Time in which siltd itself stood still does not
 * count. */
static void set_pulse(struct silt_sandbox *s, int64_t ms)
{
    s->channel.pulsing = true;
    silt_loop_after(s->registry->loop, &s->channel.pulse, ms);
}

/* True if the agent has sent data that we have not read yet. */
static bool has_news(const struct silt_sandbox *s)
{
    char byte;
    return recv(s->channel.watch.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void on_pulse(struct silt_timer *t)
{
    struct silt_sandbox *s = silt_outer(t, struct silt_sandbox, channel.pulse);
    struct silt_frame_out ping = {.type = SILT_AGENT_PING};
    int64_t half_ms = s->registry->settings.agent_deadline_ms / 2;
    int64_t silent_ms = s->registry->loop->now_ms - s->channel.heard_ms;
    s->channel.pulsing = false;
    if (s->requests == 0)
        return;
    if (!s->channel.welcome || silent_ms < half_ms) { /* the start has a deadline of its own */
        set_pulse(s, s->channel.welcome ? half_ms - silent_ms : half_ms);
        return;
    }
    if (s->channel.pinged && !has_news(s)) {
        silt_sandbox_on_lost(s, "the agent does not answer");
        return;
    }
    set_pulse(s, half_ms);
    if (!s->channel.pinged)
        silt_channel_send(s, &ping);
    s->channel.pinged = true;
}

void silt_channel_open(struct silt_sandbox *s, int channel, int pidfd)
{
    struct silt_error e;
    (void)silt_fd_nonblock(channel, &e);
    s->channel.watch = (struct silt_watch){.fd = channel, .on_ready = on_channel};
    s->channel.pidfd = (struct silt_watch){.fd = pidfd, .on_ready = on_pidfd};
    s->channel.ending = (struct silt_timer){.on_time = on_ending};
    s->channel.pulse = (struct silt_timer){.on_time = on_pulse};
    s->channel.pulsing = false;
    s->channel.pinged = false;
    silt_list_init(&s->channel.unsent);
    s->channel.unsent_bytes = 0;
    s->channel.welcome = false;
    s->channel.stuck = false;
    silt_loop_watch(s->registry->loop, &s->channel.watch, EPOLLIN);
    silt_loop_watch(s->registry->loop, &s->channel.pidfd, EPOLLIN);
}

static void free_unsent(struct silt_sandbox *s, struct unsent *u)
{
    silt_list_remove(&u->link);
    s->channel.unsent_bytes -= u->len;
    for (int i = 0; i < u->nfds; i++)
        silt_close_fd(&u->fds[i]);
    free(u);
}

void silt_channel_close(struct silt_sandbox *s)
{
    struct silt_channel *c = &s->channel;
    if (c->watch.fd < 0)
        return;
    silt_loop_cancel(s->registry->loop, &c->ending);
    silt_loop_cancel(s->registry->loop, &c->pulse);
    silt_loop_forget(s->registry->loop, &c->watch);
    silt_loop_forget(s->registry->loop, &c->pidfd);
    silt_close_fd(&c->watch.fd);
    silt_close_fd(&c->pidfd.fd);
    silt_list_each(it, &c->unsent) free_unsent(s, silt_outer(it, struct unsent, link));
}

/* Fails a request for which siltd had no spare descriptor, as if silt-init had. The agent requests
 * handles only once and then waits, so those are fetched again. */
static void fail_unsent(struct silt_sandbox *s, struct unsent *u)
{
    struct {
        struct silt_frame frame;
        struct silt_error error;
    } said = {.frame = {.type = SILT_AGENT_FAILED, .id = u->frame.id}};
    bool handles = u->frame.type == SILT_AGENT_HANDLES;
    errno = u->error;
    (void)silt_fail_errno(&said.error, "keep a descriptor for the sandbox");
    free_unsent(s, u);
    if (handles)
        silt_sandbox_on_need_handles(s, 1);
    else
        tell_facets(s, &said.frame, sizeof(said.error));
}

static void send_unsent(struct silt_sandbox *s)
{
    struct silt_error e;
    while (!silt_list_empty(&s->channel.unsent)) {
        struct unsent *u = silt_list_first(&s->channel.unsent, struct unsent, link);
        struct silt_parcel p = {.data = &u->frame, .len = u->len, .nfds = u->nfds};
        memcpy(p.fds, u->fds, sizeof(p.fds));
        if (u->error != 0) {
            fail_unsent(s, u); /* may end the sandbox */
            continue;
        }
        if (silt_fd_send(s->channel.watch.fd, &p, &e) < 0) {
            if (!will_pass(e.sys))
                silt_sandbox_on_lost(s, e.text);
            return;
        }
        free_unsent(s, u);
    }
    if (s->channel.watch.fd >= 0)
        silt_loop_watch(s->registry->loop, &s->channel.watch, EPOLLIN);
}

static void keep_unsent(struct silt_sandbox *s, const struct silt_parcel *p)
{
    struct unsent *u = calloc(1, sizeof(*u) + p->len);
    if (u == NULL)
        abort();
    u->len = p->len;
    memcpy(&u->frame, p->data, p->len);
    for (int i = 0; i < p->nfds && u->error == 0; i++) {
        u->fds[u->nfds] = fcntl(p->fds[i], F_DUPFD_CLOEXEC, 0);
        if (u->fds[u->nfds] < 0)
            u->error = errno;
        else
            u->nfds++;
    }
    silt_list_append(&s->channel.unsent, &u->link);
    s->channel.unsent_bytes += p->len;
    silt_loop_watch(s->registry->loop, &s->channel.watch, EPOLLIN | EPOLLOUT);
}

void silt_channel_send(struct silt_sandbox *s, const struct silt_frame_out *f)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } out;
    struct silt_error e = {0};
    if (s->channel.watch.fd < 0 || s->channel.stuck)
        return;
    if (f->type != SILT_AGENT_PING)
        silt_sandbox_wake(s); /* a frozen guest could not obey it */
    if (!s->channel.pulsing && s->registry->settings.agent_deadline_ms > 0)
        set_pulse(s, s->registry->settings.agent_deadline_ms / 2);
    out.frame = (struct silt_frame){.type = f->type, .flags = f->flags, .id = f->id};
    if (f->head.len > 0)
        memcpy(out.frame.body, f->head.data, f->head.len);
    if (f->body.len > 0)
        memcpy(out.frame.body + f->head.len, f->body.data, f->body.len);
    struct silt_parcel p = {.data = &out,
                            .len = sizeof(struct silt_frame) + f->head.len + f->body.len,
                            .nfds = f->nfds};
    if (f->nfds > 0)
        memcpy(p.fds, f->fds, sizeof(int) * (size_t)f->nfds);
    bool waiting = !silt_list_empty(&s->channel.unsent);
    if (!waiting && silt_fd_send(s->channel.watch.fd, &p, &e) == 0)
        return;
    if (!waiting && !will_pass(e.sys))
        return; /* the agent is gone; its pidfd will report it */
    if (s->channel.unsent_bytes + p.len <= UNSENT_MAX) {
        keep_unsent(s, &p);
        return;
    }
    /* The sender is in the middle of something: shut down here and let the loop report the end. */
    s->channel.stuck = true;
    (void)shutdown(s->channel.watch.fd, SHUT_RDWR);
}

void silt_channel_hello(struct silt_sandbox *s)
{
    uint64_t epoch = s->registry->epoch;
    struct silt_frame_out f = {.type = SILT_AGENT_HELLO,
                               .body = {(const char *)&epoch, sizeof(epoch)}};
    silt_channel_send(s, &f);
}
