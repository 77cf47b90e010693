/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "event/loop.h"
#include "event/worker.h"
#include "unit/base/unit.h"

#include <sys/socket.h>

static struct silt_loop loop;
static struct silt_error e;

static void open_loop(void)
{
    assert_int_equal(silt_loop_open(&loop, &e), 0);
}

static void turn(int timeout_ms)
{
    assert_int_equal(silt_loop_turn(&loop, timeout_ms, &e), 0);
}

struct ringer {
    struct silt_timer timer;
    int number;
};
static int rung[64];
static size_t rings;

static void on_ring(struct silt_timer *t)
{
    rung[rings++] = silt_outer(t, struct ringer, timer)->number;
}

TEST(timers_ring_in_the_order_of_their_times)
{
    static const int64_t after[] = {30, 10, 20, 1, 25, 5, 15, 2};
    struct ringer r[8];
    open_loop();
    rings = 0;
    for (int i = 0; i < 8; i++) {
        r[i] = (struct ringer){.timer.on_time = on_ring, .number = (int)after[i]};
        silt_loop_after(&loop, &r[i].timer, after[i]);
    }
    while (rings < 8)
        turn(-1);
    for (size_t i = 1; i < 8; i++)
        assert_true(rung[i - 1] < rung[i]);
    silt_loop_close(&loop);
}

TEST(a_cancelled_timer_is_silent_and_a_restarted_one_rings_once)
{
    struct ringer r[20];
    open_loop();
    rings = 0;
    for (int i = 0; i < 20; i++) {
        r[i] = (struct ringer){.timer.on_time = on_ring, .number = i};
        silt_loop_after(&loop, &r[i].timer, 1 + i % 3);
    }
    for (int i = 0; i < 20; i++)
        if (i % 4 != 0)
            silt_loop_cancel(&loop, &r[i].timer);
    silt_loop_cancel(&loop, &r[1].timer);
    silt_loop_after(&loop, &r[0].timer, 10);
    silt_loop_after(&loop, &r[0].timer, 12);
    while (r[0].timer.place != 0)
        turn(-1);
    assert_int_equal(rings, 5);
    assert_int_equal(rung[4], 0);
    assert_int_equal(loop.timers, 0);
    silt_loop_close(&loop);
}

TEST(many_timers_in_random_order_keep_the_heap_in_order)
{
    static struct ringer r[1000];
    unsigned seed = 7;
    open_loop();
    for (int i = 0; i < 1000; i++) {
        r[i] = (struct ringer){.timer.on_time = on_ring};
        silt_loop_after(&loop, &r[i].timer, 100000 + rand_r(&seed) % 1000);
    }
    for (int i = 0; i < 5000; i++) {
        struct silt_timer *t = &r[rand_r(&seed) % 1000].timer;
        if (rand_r(&seed) % 2 != 0)
            silt_loop_cancel(&loop, t);
        else
            silt_loop_after(&loop, t, 100000 + rand_r(&seed) % 1000);
    }
    for (size_t i = 2; i <= loop.timers; i++) {
        assert_int_equal(loop.heap[i]->place, i);
        assert_true(loop.heap[i / 2]->at_ms <= loop.heap[i]->at_ms);
    }
    silt_loop_close(&loop);
}

struct end {
    struct silt_watch watch;
    struct silt_grave grave;
    struct end *victim;
    int calls;
    uint32_t events;
};
static int buried;

static void on_buried(struct silt_grave *g)
{
    (void)g;
    buried++;
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct end *x = silt_outer(w, struct end, watch);
    x->calls++;
    x->events = events;
    if (x->victim == NULL)
        return;
    int fd = x->victim->watch.fd;
    silt_loop_forget(&loop, &x->victim->watch);
    silt_close_fd(&fd);
    silt_loop_bury(&loop, &x->victim->grave);
    x->victim = NULL;
}

static void watch_pair(struct end *x, int *ret_other)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *x = (struct end){.watch = {.fd = pair[0], .on_ready = on_ready}, .grave.free = on_buried};
    silt_loop_watch(&loop, &x->watch, EPOLLIN);
    *ret_other = pair[1];
}

static void end_pair(struct end *x, int other)
{
    silt_loop_forget(&loop, &x->watch);
    (void)close(x->watch.fd);
    (void)close(other);
}

TEST(a_watch_hears_what_it_asked_for)
{
    struct end x;
    int other;
    open_loop();
    watch_pair(&x, &other);
    turn(0);
    assert_int_equal(x.calls, 0);
    assert_int_equal(write(other, "a", 1), 1);
    turn(0);
    turn(0);
    assert_int_equal(x.calls, 2); /* level-triggered */
    silt_loop_watch(&loop, &x.watch, EPOLLOUT);
    turn(0);
    assert_int_equal(x.events, EPOLLOUT);
    silt_loop_watch(&loop, &x.watch, 0);
    turn(0);
    assert_int_equal(x.calls, 3);
    silt_loop_watch(&loop, &x.watch, EPOLLIN);
    turn(0);
    assert_int_equal(x.calls, 4);
    end_pair(&x, other);
    silt_loop_close(&loop);
}

TEST(a_watch_that_ends_inside_a_batch_is_not_called_and_is_freed_after_it)
{
    struct end a, b;
    int to_a, to_b;
    open_loop();
    buried = 0;
    watch_pair(&a, &to_a);
    watch_pair(&b, &to_b);
    a.victim = &b;
    b.victim = &a;
    assert_int_equal(write(to_a, "x", 1), 1);
    assert_int_equal(write(to_b, "x", 1), 1);
    turn(0);
    assert_int_equal(a.calls + b.calls, 1);
    assert_int_equal(buried, 1);
    if (a.calls > 0)
        end_pair(&a, to_a);
    else
        end_pair(&b, to_b);
    (void)close(a.calls > 0 ? to_b : to_a);
    silt_loop_close(&loop);
}

static struct end second;
static int second_fd = -1;

/* Ends b and puts another watch at its number. */
static void on_replace(struct silt_watch *w, uint32_t events)
{
    struct end *x = silt_outer(w, struct end, watch);
    (void)events;
    x->calls++;
    if (x->victim == NULL)
        return;
    int fd = x->victim->watch.fd;
    silt_loop_forget(&loop, &x->victim->watch);
    assert_int_equal(dup2(second_fd, fd), fd);
    second = (struct end){.watch = {.fd = fd, .on_ready = on_ready}};
    silt_loop_watch(&loop, &second.watch, EPOLLIN);
    x->victim = NULL;
}

TEST(an_event_of_a_closed_descriptor_does_not_reach_its_successor)
{
    struct end a, b;
    int to_a, to_b, pair[2];
    open_loop();
    watch_pair(&a, &to_a);
    watch_pair(&b, &to_b);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    second_fd = pair[0];
    a.watch.on_ready = on_replace;
    b.watch.on_ready = on_replace;
    a.victim = &b;
    b.victim = &a;
    assert_int_equal(write(to_a, "x", 1), 1);
    assert_int_equal(shutdown(to_b, SHUT_RDWR), 0);
    assert_int_equal(write(to_a, "x", 1), 1);
    turn(0);
    assert_int_equal(second.calls, 0);
    silt_loop_forget(&loop, &second.watch);
    int all[] = {a.watch.fd, b.watch.fd, to_a, to_b, pair[0], pair[1]};
    for (size_t i = 0; i < SILT_COUNT(all); i++)
        (void)close(all[i]);
    silt_loop_close(&loop);
}

static void on_stop(struct silt_timer *t)
{
    (void)t;
    silt_loop_stop(&loop);
}

TEST(a_loop_runs_until_it_is_stopped_and_can_run_again)
{
    struct silt_timer t = {.on_time = on_stop};
    open_loop();
    for (int i = 0; i < 2; i++) {
        silt_loop_after(&loop, &t, 1);
        assert_int_equal(silt_loop_run(&loop, &e), 0);
    }
    silt_loop_close(&loop);
}

TEST(closing_a_loop_empties_the_graves)
{
    struct silt_grave g = {.free = on_buried};
    open_loop();
    buried = 0;
    silt_loop_bury(&loop, &g);
    silt_loop_close(&loop);
    assert_int_equal(buried, 1);
}

struct sum {
    struct silt_job job;
    int from, result;
};
static int done;

static void add_up(struct silt_job *j)
{
    struct sum *s = silt_outer(j, struct sum, job);
    for (int i = 1; i <= s->from; i++)
        s->result += i;
}

static void on_done(struct silt_job *j)
{
    struct sum *s = silt_outer(j, struct sum, job);
    assert_int_equal(s->result, s->from * (s->from + 1) / 2);
    if (++done == 100)
        silt_loop_stop(&loop);
}

TEST(jobs_run_on_workers_and_come_back_to_the_loop)
{
    static struct sum sums[100];
    struct silt_worker *w;
    open_loop();
    done = 0;
    assert_int_equal(silt_worker_open(&loop, 2, &w, &e), 0);
    for (int i = 0; i < 100; i++) {
        sums[i] = (struct sum){.job = {.run = add_up, .done = on_done}, .from = i};
        silt_worker_submit(w, &sums[i].job);
    }
    assert_int_equal(silt_loop_run(&loop, &e), 0);
    assert_int_equal(done, 100);
    silt_worker_close(w);
    silt_loop_close(&loop);
}
