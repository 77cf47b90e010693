/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/output.h"
#include "base/clock.h"
#include "wire/agent.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* After a command ended: this long without a byte is the end of output, with a limit for the total
 * wait. A filter behind `> >(filter)` ends within the first; a server left behind keeps writing. */
enum { SILENCE_MS = 10, PATIENCE_MS = 200 };

/* A pipe holds at most this many frames, unless its user enlarged it. */
enum { FRAMES_OF_A_PIPE = 3 };

enum flow {
    MOVED,   /* bytes were forwarded; there may be more */
    EMPTY,   /* nothing there now */
    ENDED,   /* end-of-file */
    BLOCKED, /* siltd or the channel does not accept more */
};

/* Shared: bytes are sent or dropped before the next are read. */
static char bytes[SILT_FRAME_BODY_MAX];

static void tell_follower(struct silt_output *o)
{
    struct silt_agent_logged l = {.head = o->log->head.head, .tail = o->log->head.tail};
    struct silt_say s = {
        .type = SILT_AGENT_LOGGED, .id = o->id, .head = {(const char *)&l, sizeof(l)}};
    if (!o->following || l.head <= o->followed)
        return;
    o->following = false;
    silt_channel_say(o->channel, &s);
}

static void say(struct silt_tap *t, size_t len)
{
    struct silt_output *o = t->outlet;
    struct silt_say s = {
        .type = SILT_AGENT_OUT, .flags = t->stream, .id = o->id, .head = {bytes, len}};
    o->credit -= len;
    silt_channel_say(o->channel, &s);
}

static void pass_on(struct silt_tap *t, size_t len)
{
    struct silt_output *o = t->outlet;
    if (o->log != NULL) {
        silt_log_writer_put(o->log, t->stream, len);
        silt_log_rate_spend(o->pace, len);
        tell_follower(o);
    } else if (!o->dropping) {
        say(t, len);
    }
}

static bool is_held(const struct silt_output *o)
{
    uint64_t head = o->log->head.head;
    return o->holding && head > o->followed && head - o->followed > SILT_LOG_UNREAD_MAX;
}

static bool log_must_wait(struct silt_tap *t)
{
    struct silt_output *o = t->outlet;
    if (is_held(o))
        return true;
    if (!silt_log_rate_is_over(o->pace))
        return false;
    silt_log_rate_wait(o->pace, &t->wait);
    return true;
}

static bool must_wait(struct silt_tap *t)
{
    struct silt_output *o = t->outlet;
    if (o->log != NULL)
        return log_must_wait(t);
    if (o->dropping)
        return false;
    if (silt_channel_is_free(o->channel))
        return o->credit == 0;
    silt_channel_wait(o->channel, &t->wait);
    return true;
}

static bool is_blocked(struct silt_tap *t)
{
    if (!must_wait(t))
        return false;
    silt_loop_forget(t->outlet->loop, &t->watch);
    return true;
}

static void end_tap(struct silt_tap *t)
{
    t->ended = true;
    t->owed = 0;
    silt_loop_forget(t->outlet->loop, &t->watch);
}

static ssize_t take(struct silt_tap *t)
{
    struct silt_output *o = t->outlet;
    size_t room = o->dropping || o->credit > sizeof(bytes) ? sizeof(bytes) : (size_t)o->credit;
    if (o->log != NULL)
        return read(t->watch.fd, silt_log_writer_room(), SILT_LOG_RECORD_MAX);
    return read(t->watch.fd, bytes, room);
}

static enum flow pump(struct silt_tap *t)
{
    if (t->ended)
        return ENDED;
    if (is_blocked(t))
        return BLOCKED;
    ssize_t n = take(t);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return EMPTY;
    if (n <= 0) {
        end_tap(t);
        return ENDED;
    }
    t->owed -= (size_t)n < t->owed ? (size_t)n : t->owed;
    pass_on(t, (size_t)n);
    return MOVED;
}

static size_t in_pipe(const struct silt_tap *t)
{
    int there = 0;
    return !t->ended && ioctl(t->watch.fd, FIONREAD, &there) == 0 && there > 0 ? (size_t)there : 0;
}

static void settle(struct silt_output *o)
{
    silt_loop_cancel(o->loop, &o->timer);
    silt_output_abandon(o);
    o->on_dry(o);
}

static bool is_owed(const struct silt_output *o)
{
    return o->taps[0].owed > 0 || o->taps[1].owed > 0;
}

/* While closing: called after every transfer. */
static void look(struct silt_output *o)
{
    int64_t left_ms = o->until_ms - silt_clock_ms();
    if (o->state != SILT_OUTPUT_CLOSING)
        return;
    if (o->taps[0].ended && o->taps[1].ended) {
        settle(o);
        return;
    }
    if (is_owed(o))
        silt_loop_cancel(o->loop, &o->timer);
    else
        silt_loop_after(o->loop, &o->timer, left_ms < SILENCE_MS ? left_ms : SILENCE_MS);
}

static void on_time(struct silt_timer *timer)
{
    struct silt_output *o = silt_outer(timer, struct silt_output, timer);
    /* On a busy machine the filter may not have run yet. */
    if (silt_clock_ms() < o->until_ms && o->is_restless(o))
        silt_loop_after(o->loop, timer, SILENCE_MS);
    else
        settle(o);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_tap *t = silt_outer(w, struct silt_tap, watch);
    (void)events;
    enum flow flow = pump(t);
    if (flow != MOVED && flow != ENDED)
        return;
    if (t->outlet->on_moved != NULL)
        t->outlet->on_moved(t->outlet);
    look(t->outlet);
}

static void resume(struct silt_output *o, struct silt_tap *t)
{
    if (o->state != SILT_OUTPUT_CLOSED && !t->ended && silt_list_empty(&t->wait.link))
        silt_loop_watch(o->loop, &t->watch, EPOLLIN);
}

static void on_free(struct silt_channel_wait *w)
{
    struct silt_tap *t = silt_outer(w, struct silt_tap, wait);
    resume(t->outlet, t);
}

void silt_output_init(struct silt_output *o, struct silt_loop *loop, struct silt_channel *channel)
{
    o->loop = loop;
    o->channel = channel;
    o->state = SILT_OUTPUT_CLOSED;
    o->credit = SILT_EXEC_WINDOW;
    o->timer.on_time = on_time;
}

void silt_output_open(struct silt_output *o, uint64_t id, int out, int err)
{
    const int fds[2] = {out, err};
    o->id = id;
    o->state = SILT_OUTPUT_FLOWING;
    for (uint32_t i = 0; i < 2; i++) {
        struct silt_tap *t = &o->taps[i];
        *t = (struct silt_tap){.outlet = o, .stream = i + 1};
        t->watch = (struct silt_watch){.fd = fds[i], .on_ready = on_ready};
        t->wait.on_free = on_free;
        t->ended = fds[i] < 0;
        silt_list_init(&t->wait.link);
        if (!t->ended)
            silt_loop_watch(o->loop, &t->watch, EPOLLIN);
    }
}

void silt_output_close(struct silt_output *o)
{
    if (o->state != SILT_OUTPUT_FLOWING)
        return;
    o->state = SILT_OUTPUT_CLOSING;
    o->until_ms = silt_clock_ms() + PATIENCE_MS;
    for (int i = 0; i < 2; i++) {
        struct silt_tap *t = &o->taps[i];
        enum flow flow = MOVED;
        for (int n = 0; n < FRAMES_OF_A_PIPE && flow == MOVED; n++)
            flow = pump(t);
        if (flow == BLOCKED || flow == MOVED)
            t->owed = in_pipe(t);
    }
    look(o);
}

/* While closing nothing is left to do: everything is owed already. */
void silt_output_drain(struct silt_output *o)
{
    for (int i = 0; i < 2 && o->state == SILT_OUTPUT_FLOWING; i++) {
        struct silt_tap *t = &o->taps[i];
        t->owed = in_pipe(t);
        while (t->owed > 0 && pump(t) == MOVED)
            ;
    }
}

/* Bytes that a reader holds back cannot be forwarded before it reads, which is its own affair. The
 * guest can read its pipes itself: what it took never arrives. */
bool silt_output_owes(const struct silt_output *o)
{
    if (o->state == SILT_OUTPUT_CLOSED || (o->log != NULL && is_held(o)))
        return false;
    if (o->state == SILT_OUTPUT_CLOSING)
        return true;
    for (int i = 0; i < 2; i++)
        if (o->taps[i].owed > 0 && in_pipe(&o->taps[i]) > 0)
            return true;
    return false;
}

void silt_output_abandon(struct silt_output *o)
{
    if (o->state == SILT_OUTPUT_CLOSED)
        return;
    o->state = SILT_OUTPUT_CLOSED;
    silt_loop_cancel(o->loop, &o->timer);
    for (int i = 0; i < 2; i++) {
        silt_loop_forget(o->loop, &o->taps[i].watch);
        silt_list_remove(&o->taps[i].wait.link);
    }
}

void silt_output_credit(struct silt_output *o, uint64_t more)
{
    if (__builtin_add_overflow(o->credit, more, &o->credit) || o->credit > SILT_EXEC_WINDOW)
        o->credit = SILT_EXEC_WINDOW;
    resume(o, &o->taps[0]);
    resume(o, &o->taps[1]);
}

void silt_output_drop(struct silt_output *o)
{
    o->dropping = o->log == NULL;
    o->holding = o->following = false;
    for (int i = 0; i < 2 && o->state != SILT_OUTPUT_CLOSED; i++) {
        silt_list_remove(&o->taps[i].wait.link);
        resume(o, &o->taps[i]);
    }
}

void silt_output_renew(struct silt_output *o)
{
    o->holding = o->following = false;
    silt_output_credit(o, SILT_EXEC_WINDOW);
}

void silt_output_follow(struct silt_output *o, uint64_t position)
{
    if (o->log == NULL)
        return;
    o->followed = position;
    o->following = true;
    tell_follower(o);
    resume(o, &o->taps[0]);
    resume(o, &o->taps[1]);
}
