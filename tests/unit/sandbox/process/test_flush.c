/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the log of a process that runs, and what its agent is asked for them. */
#include "harness.h"
#include "base/clock.h"
#include "sandbox/process/log_follower.h"
#include "unit/base/unit.h"

#include <unistd.h>

enum { MANY = 200 };

static struct harness h;
static struct silt_sandbox *box;

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    assert_null(e);
    box = s;
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    (void)w, (void)p, (void)e;
    assert_int_equal(what, SILT_PROCESS_STARTED);
}

/* One that runs. */
static struct silt_process *set_up(void)
{
    static struct silt_waiter w;
    static struct silt_process_watch watch;
    struct silt_priv_request q;
    struct silt_process_request ask = {
        .exec = {.mode = SILT_EXEC_PLAIN, .command = SILT_LIT("true")}, .id = SILT_LIT("p")};
    struct silt_process *p = NULL;
    struct silt_error e;
    struct harness_frame f;
    int32_t pid = 42;
    assert_int_equal(harness_open(&h), 0);
    w = (struct silt_waiter){.on_ready = on_ready};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    watch = (struct silt_process_watch){.on_event = on_event};
    assert_int_equal(silt_process_start(box, NULL, &ask, &watch, &p, &e), 0);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    struct silt_log_head head = {.magic = SILT_LOG_MAGIC, .ring_bytes = SILT_LOG_RING};
    assert_int_equal(pwrite(h.log, &head, sizeof(head), 0), sizeof(head));
    harness_say(&h, SILT_AGENT_STARTED, 0, p->row.number, &pid, sizeof(pid));
    return p;
}

struct reading {
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follower; /* NULL: it is over */
    struct reading *takes_along;
    bool over;
};

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    (void)sink, (void)piece;
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct reading *r = silt_outer(sink, struct reading, sink), *other = r->takes_along;
    (void)cursor;
    r->over = true;
    r->follower = NULL;
    if (other == NULL || other->follower == NULL)
        return;
    silt_log_follower_stop(other->follower);
    other->follower = NULL;
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    (void)sink;
    fail_msg("%s", e->text);
}

static void take_snapshot(struct silt_process *p, struct reading *r)
{
    struct silt_log_follower_options o = {.from_tail = true, .snapshot = true};
    *r = (struct reading){.sink = {.output = on_output, .over = on_over, .failed = on_failed}};
    r->follower = silt_log_follower_start(p, &o, &r->sink);
    harness_turn(&h);
}

static int count_over(const struct reading *r, int readers)
{
    int count = 0;
    for (int i = 0; i < readers; i++)
        count += r[i].over;
    return count;
}

/* A thread may read the log. */
static void until_over(const struct reading *r, int readers, int count)
{
    struct silt_error e;
    for (int64_t until = silt_clock_ms() + 30000;
         count_over(r, readers) < count && silt_clock_ms() < until;)
        (void)silt_loop_turn(&h.loop, 100, &e);
    harness_turn(&h);
    assert_int_equal(count_over(r, readers), count);
}

static void expect_question(const struct silt_process *p)
{
    struct harness_frame f;
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_PING);
    assert_int_equal(f.frame.flags, SILT_PING_FLUSH);
    assert_int_equal(f.frame.id, p->row.number);
}

static void expect_no_question(void)
{
    struct harness_frame f;
    assert_int_equal(harness_told(&h, &f), 0);
}

TEST(flush_asks_twice_for_however_many_come_at_once)
{
    static struct reading r[MANY];
    struct silt_process *p = set_up();
    for (int i = 0; i < MANY; i++)
        take_snapshot(p, &r[i]);
    expect_question(p);
    expect_no_question();
    assert_int_equal(count_over(r, MANY), 0);
    harness_say(&h, SILT_AGENT_PONG, 0, p->row.number, NULL, 0);
    until_over(r, MANY, 1);
    expect_question(p);
    expect_no_question();
    harness_say(&h, SILT_AGENT_PONG, 0, p->row.number, NULL, 0);
    until_over(r, MANY, MANY);
    expect_no_question();
    harness_close(&h);
}

TEST(flush_ends_with_the_process)
{
    static struct reading r[MANY];
    struct silt_agent_end end = {0};
    struct silt_process *p = set_up();
    for (int i = 0; i < MANY; i++)
        take_snapshot(p, &r[i]);
    expect_question(p);
    harness_say(&h, SILT_AGENT_ENDED, 0, p->row.number, &end, sizeof(end));
    until_over(r, MANY, MANY);
    expect_no_question();
    harness_close(&h);
}

TEST(flush_takes_no_answer_that_nobody_asked_for)
{
    struct reading r;
    struct silt_process *p = set_up();
    for (int i = 0; i < 3; i++)
        harness_say(&h, SILT_AGENT_PONG, 0, p->row.number, NULL, 0);
    take_snapshot(p, &r);
    expect_question(p);
    assert_false(r.over);
    harness_say(&h, SILT_AGENT_PONG, 0, p->row.number, NULL, 0);
    until_over(&r, 1, 1);
    harness_close(&h);
}

TEST(flush_that_gets_no_answer_is_given_up)
{
    struct reading first, second;
    struct silt_process *p = set_up();
    take_snapshot(p, &first);
    expect_question(p);
    until_over(&first, 1, 1);
    take_snapshot(p, &second);
    expect_question(p);
    harness_say(&h, SILT_AGENT_PONG, 0, p->row.number, NULL, 0);
    until_over(&second, 1, 1);
    harness_close(&h);
}

/* Of one connection: with its end all of them go. */
static void end_with_one_that_takes_the_next_along(struct silt_process *p, struct reading r[4])
{
    struct silt_agent_end end = {0};
    r[1].takes_along = &r[2];
    (void)alarm(60); /* a loop without an end is one that way */
    harness_say(&h, SILT_AGENT_ENDED, 0, p->row.number, &end, sizeof(end));
    until_over(r, 4, 3);
    (void)alarm(0);
    assert_false(r[2].over);
    harness_close(&h);
}

TEST(flush_bears_a_reader_that_takes_the_next_one_along)
{
    static struct reading r[4];
    struct silt_process *p = set_up();
    for (int i = 0; i < 4; i++)
        take_snapshot(p, &r[i]);
    expect_question(p);
    end_with_one_that_takes_the_next_along(p, r);
}

TEST(log_follower_bears_a_reader_that_takes_the_next_one_along)
{
    static struct reading r[4];
    struct silt_log_follower_options o = {.from_tail = true};
    struct silt_process *p = set_up();
    for (int i = 0; i < 4; i++) {
        r[i].sink = (struct silt_log_follower_sink){
            .output = on_output, .over = on_over, .failed = on_failed};
        r[i].follower = silt_log_follower_start(p, &o, &r[i].sink);
    }
    harness_turn(&h);
    end_with_one_that_takes_the_next_along(p, r);
}
