/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/outlet.h"
#include "base/clock.h"
#include "wire/agent.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* After the end of a command: this long without a byte is silence, and no more than that in all. A
 * filter behind `> >(filter)` ends within the first; a server that was left behind talks on and on.
 */
enum { SILENCE_MS = 10, PATIENCE_MS = 200 };

/* What a pipe holds, unless its user has made it larger, is at most this many frames. */
enum { FRAMES_OF_A_PIPE = 3 };

enum flow {
    MOVED,   /* bytes went; there may be more */
    EMPTY,   /* nothing there now */
    ENDED,   /* nothing will ever be there */
    BLOCKED, /* siltd or the channel does not take it */
};

/* One for all: bytes are sent or dropped before the next are read. */
static char bytes[SILT_FRAME_BODY_MAX];

static void tell_follower(struct silt_outlet *o)
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
    struct silt_outlet *o = t->outlet;
    struct silt_say s = {
        .type = SILT_AGENT_OUT, .flags = t->stream, .id = o->id, .head = {bytes, len}};
    o->credit -= len;
    silt_channel_say(o->channel, &s);
}

static void pass_on(struct silt_tap *t, size_t len)
{
    struct silt_outlet *o = t->outlet;
    if (o->log != NULL) {
        silt_log_writer_put(o->log, t->stream, len);
        silt_pace_spend(o->pace, len);
        tell_follower(o);
    } else if (!o->dropping) {
        say(t, len);
    }
}

static bool is_held(const struct silt_outlet *o)
{
    uint64_t head = o->log->head.head;
    return o->holding && head > o->followed && head - o->followed > SILT_LOG_UNREAD_MAX;
}

static bool log_must_wait(struct silt_tap *t)
{
    struct silt_outlet *o = t->outlet;
    if (is_held(o))
        return true;
    if (!silt_pace_is_over(o->pace))
        return false;
    silt_pace_wait(o->pace, &t->wait);
    return true;
}

static bool must_wait(struct silt_tap *t)
{
    struct silt_outlet *o = t->outlet;
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
    struct silt_outlet *o = t->outlet;
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

static void settle(struct silt_outlet *o)
{
    silt_loop_cancel(o->loop, &o->timer);
    silt_outlet_abandon(o);
    o->on_dry(o);
}

static bool is_owed(const struct silt_outlet *o)
{
    return o->taps[0].owed > 0 || o->taps[1].owed > 0;
}

/* While closing, after every move. */
static void look(struct silt_outlet *o)
{
    int64_t left_ms = o->until_ms - silt_clock_ms();
    if (o->state != SILT_OUTLET_CLOSING)
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
    struct silt_outlet *o = silt_container_of(timer, struct silt_outlet, timer);
    /* On a busy machine the filter has not even had its turn yet. */
    if (silt_clock_ms() < o->until_ms && o->is_restless(o))
        silt_loop_after(o->loop, timer, SILENCE_MS);
    else
        settle(o);
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_tap *t = silt_container_of(w, struct silt_tap, watch);
    (void)events;
    enum flow flow = pump(t);
    if (flow == MOVED || flow == ENDED)
        look(t->outlet);
}

static void resume(struct silt_outlet *o, struct silt_tap *t)
{
    if (o->state != SILT_OUTLET_CLOSED && !t->ended && silt_list_empty(&t->wait.link))
        silt_loop_watch(o->loop, &t->watch, EPOLLIN);
}

static void on_free(struct silt_channel_wait *w)
{
    struct silt_tap *t = silt_container_of(w, struct silt_tap, wait);
    resume(t->outlet, t);
}

void silt_outlet_init(struct silt_outlet *o, struct silt_loop *loop, struct silt_channel *channel)
{
    o->loop = loop;
    o->channel = channel;
    o->state = SILT_OUTLET_CLOSED;
    o->credit = SILT_EXEC_WINDOW;
    o->timer.on_time = on_time;
}

void silt_outlet_open(struct silt_outlet *o, uint64_t id, int out, int err)
{
    const int fds[2] = {out, err};
    o->id = id;
    o->state = SILT_OUTLET_FLOWING;
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

void silt_outlet_close(struct silt_outlet *o)
{
    if (o->state != SILT_OUTLET_FLOWING)
        return;
    o->state = SILT_OUTLET_CLOSING;
    o->until_ms = silt_clock_ms() + PATIENCE_MS;
    for (int i = 0; i < 2; i++) {
        struct silt_tap *t = &o->taps[i];
        int there = 0;
        enum flow flow = MOVED;
        for (int n = 0; n < FRAMES_OF_A_PIPE && flow == MOVED; n++)
            flow = pump(t);
        if ((flow == BLOCKED || flow == MOVED) && ioctl(t->watch.fd, FIONREAD, &there) == 0)
            t->owed = (size_t)there;
    }
    look(o);
}

void silt_outlet_abandon(struct silt_outlet *o)
{
    if (o->state == SILT_OUTLET_CLOSED)
        return;
    o->state = SILT_OUTLET_CLOSED;
    silt_loop_cancel(o->loop, &o->timer);
    for (int i = 0; i < 2; i++) {
        silt_loop_forget(o->loop, &o->taps[i].watch);
        silt_list_remove(&o->taps[i].wait.link);
    }
}

void silt_outlet_credit(struct silt_outlet *o, uint64_t more)
{
    if (__builtin_add_overflow(o->credit, more, &o->credit) || o->credit > SILT_EXEC_WINDOW)
        o->credit = SILT_EXEC_WINDOW;
    resume(o, &o->taps[0]);
    resume(o, &o->taps[1]);
}

void silt_outlet_drop(struct silt_outlet *o)
{
    o->dropping = o->log == NULL;
    o->holding = o->following = false;
    for (int i = 0; i < 2 && o->state != SILT_OUTLET_CLOSED; i++) {
        silt_list_remove(&o->taps[i].wait.link);
        resume(o, &o->taps[i]);
    }
}

void silt_outlet_renew(struct silt_outlet *o)
{
    o->holding = o->following = false;
    silt_outlet_credit(o, SILT_EXEC_WINDOW);
}

void silt_outlet_follow(struct silt_outlet *o, uint64_t position)
{
    if (o->log == NULL)
        return;
    o->followed = position;
    o->following = true;
    tell_follower(o);
    resume(o, &o->taps[0]);
    resume(o, &o->taps[1]);
}
