/* SPDX-License-Identifier: Apache-2.0 */
#include "event/loop.h"
#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64 };

int silt_loop_open(struct silt_loop *l, struct silt_error *e)
{
    *l = (struct silt_loop){.epoll = epoll_create1(EPOLL_CLOEXEC), .now_ms = silt_clock_ms()};
    if (l->epoll < 0)
        return silt_fail_errno(e, "create epoll");
    return 0;
}

static void empty_graves(struct silt_loop *l)
{
    while (l->graves != NULL) {
        struct silt_grave *g = l->graves;
        l->graves = g->next;
        g->free(g);
    }
}

void silt_loop_close(struct silt_loop *l)
{
    empty_graves(l);
    free(l->heap);
    free(l->live);
    if (l->epoll >= 0)
        (void)close(l->epoll);
    *l = (struct silt_loop){.epoll = -1};
}

void silt_loop_stop(struct silt_loop *l)
{
    l->stopping = true;
}

static void remember(struct silt_loop *l, int fd, struct silt_watch *w)
{
    size_t at = (size_t)fd;
    if (at >= l->live_cap) {
        size_t cap = l->live_cap > 0 ? l->live_cap : 64;
        while (cap <= at)
            cap *= 2;
        l->live = realloc(l->live, cap * sizeof(struct silt_watch *));
        if (l->live == NULL)
            abort();
        memset(l->live + l->live_cap, 0, (cap - l->live_cap) * sizeof(struct silt_watch *));
        l->live_cap = cap;
    }
    l->live[at] = w;
}

void silt_loop_watch(struct silt_loop *l, struct silt_watch *w, uint32_t events)
{
    if (events == w->events)
        return;
    if (events == 0) {
        silt_loop_forget(l, w);
        return;
    }
    if (w->events == 0)
        w->serial = ++l->serials;
    struct epoll_event ev = {.events = events,
                             .data.u64 = (uint64_t)w->serial << 32 | (uint32_t)w->fd};
    int op = w->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(l->epoll, op, w->fd, &ev) < 0)
        abort();
    w->events = events;
    remember(l, w->fd, w);
}

void silt_loop_forget(struct silt_loop *l, struct silt_watch *w)
{
    if (w->events == 0)
        return;
    if (epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL) < 0)
        abort();
    w->events = 0;
    l->live[w->fd] = NULL;
}

/* A binary heap with the next timer at index 1. */
static void put_at(struct silt_loop *l, size_t place, struct silt_timer *t)
{
    l->heap[place] = t;
    t->place = place;
}

static void rise(struct silt_loop *l, size_t place)
{
    struct silt_timer *t = l->heap[place];
    for (; place > 1 && l->heap[place / 2]->at_ms > t->at_ms; place /= 2)
        put_at(l, place, l->heap[place / 2]);
    put_at(l, place, t);
}

static void sink(struct silt_loop *l, size_t place)
{
    struct silt_timer *t = l->heap[place];
    for (;;) {
        size_t child = place * 2;
        if (child > l->timers)
            break;
        if (child < l->timers && l->heap[child + 1]->at_ms < l->heap[child]->at_ms)
            child++;
        if (l->heap[child]->at_ms >= t->at_ms)
            break;
        put_at(l, place, l->heap[child]);
        place = child;
    }
    put_at(l, place, t);
}

void silt_loop_cancel(struct silt_loop *l, struct silt_timer *t)
{
    size_t place = t->place;
    if (place == 0)
        return;
    struct silt_timer *last = l->heap[l->timers--];
    t->place = 0;
    if (last == t)
        return;
    put_at(l, place, last);
    rise(l, place);
    sink(l, last->place);
}

void silt_loop_after(struct silt_loop *l, struct silt_timer *t, int64_t ms)
{
    silt_loop_cancel(l, t);
    if (l->timers + 1 >= l->heap_cap) {
        l->heap_cap = l->heap_cap > 0 ? l->heap_cap * 2 : 16;
        l->heap = realloc(l->heap, l->heap_cap * sizeof(struct silt_timer *));
        if (l->heap == NULL)
            abort();
    }
    t->at_ms = silt_clock_ms() + (ms > 0 ? ms : 0);
    put_at(l, ++l->timers, t);
    rise(l, l->timers);
}

void silt_loop_bury(struct silt_loop *l, struct silt_grave *g)
{
    g->next = l->graves;
    l->graves = g;
}

static int wait_ms(const struct silt_loop *l, int timeout_ms)
{
    if (l->timers == 0)
        return timeout_ms;
    int64_t left = l->heap[1]->at_ms - silt_clock_ms();
    if (left < 0)
        left = 0;
    if (timeout_ms >= 0 && left > timeout_ms)
        return timeout_ms;
    return left > 60000 ? 60000 : (int)left;
}

static void deliver(struct silt_loop *l, const struct epoll_event *ev)
{
    /* An earlier callback of this batch may have removed this watch, or its number may belong to
     * another watch by now, which must not get the queued event. Level triggering repeats every
     * event skipped here. */
    struct silt_watch *w = l->live[(uint32_t)ev->data.u64];
    bool same = w != NULL && w->serial == (uint32_t)(ev->data.u64 >> 32);
    if (same && (ev->events & (w->events | EPOLLERR | EPOLLHUP)) != 0)
        w->on_ready(w, ev->events);
}

static void ring(struct silt_loop *l)
{
    while (l->timers > 0 && l->heap[1]->at_ms <= l->now_ms) {
        struct silt_timer *t = l->heap[1];
        silt_loop_cancel(l, t);
        t->on_time(t);
    }
}

int silt_loop_turn(struct silt_loop *l, int timeout_ms, struct silt_error *e)
{
    struct epoll_event events[BATCH];
    int n = epoll_wait(l->epoll, events, BATCH, wait_ms(l, timeout_ms));
    if (n < 0 && errno != EINTR)
        return silt_fail_errno(e, "wait for events");
    l->now_ms = silt_clock_ms();
    l->turns++;
    for (int i = 0; i < n; i++)
        deliver(l, &events[i]);
    ring(l);
    empty_graves(l);
    return 0;
}

int silt_loop_run(struct silt_loop *l, struct silt_error *e)
{
    l->stopping = false;
    while (!l->stopping)
        if (silt_loop_turn(l, -1, e) < 0)
            return -1;
    return 0;
}
