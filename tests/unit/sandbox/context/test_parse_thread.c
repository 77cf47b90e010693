/* SPDX-License-Identifier: Apache-2.0 */
/* Long lines of an interpreter are understood on a thread, while the loop goes on. */
#include "sandbox/context/parse_thread.h"
#include "base/clock.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <unistd.h>

enum { DEADLINE_MS = 30000 };

static struct rig {
    struct silt_loop loop;
    struct silt_worker *threads;
    struct silt_fair_queue lanes;
    struct silt_fair_queue_user user;
    struct silt_parse_listener listener;
    int heard, refused;
    size_t told;
    enum silt_kernel_word word;
    struct silt_job gate; /* holds the only thread until its pipe ends */
    int pipe[2];
    bool open;
} rig;
static struct silt_error e;

static void on_heard(struct silt_parse_listener *l, const struct silt_kernel_said *said,
                     const struct silt_error *why)
{
    assert_ptr_equal(l, &rig.listener);
    assert_null(l->thread);
    if (said == NULL) {
        assert_int_not_equal(why->text[0], 0);
        rig.refused++;
        return;
    }
    rig.heard++;
    rig.word = said->word;
    rig.told = said->told.len;
}

static void wait_at_the_gate(struct silt_job *j)
{
    char byte;
    (void)j;
    (void)!read(rig.pipe[0], &byte, 1);
}

static void on_open(struct silt_job *j)
{
    (void)j;
    rig.open = true;
}

static void begin(void)
{
    rig = (struct rig){.listener = {.on_heard = on_heard},
                       .gate = {.run = wait_at_the_gate, .done = on_open}};
    silt_fair_queue_init(&rig.lanes, 2, 1);
    assert_int_equal(silt_loop_open(&rig.loop, &e), 0);
    assert_int_equal(silt_worker_open(&rig.loop, 1, &rig.threads, &e), 0);
    assert_int_equal(pipe(rig.pipe), 0);
    silt_worker_submit(rig.threads, &rig.gate);
}

static void open_gate(void)
{
    silt_close_fd(&rig.pipe[1]);
}

static void end(void)
{
    if (rig.pipe[1] >= 0)
        open_gate();
    silt_worker_close(rig.threads);
    silt_close_fd(&rig.pipe[0]);
    silt_loop_close(&rig.loop);
}

static void turn_until(const bool *open, const int *count)
{
    int64_t by_ms = silt_clock_ms() + DEADLINE_MS;
    while (!*open || *count == 0) {
        assert_true(silt_clock_ms() < by_ms);
        assert_int_equal(silt_loop_turn(&rig.loop, 100, &e), 0);
    }
}

static void say(struct silt_fair_queue_turn *lane, const char *before, size_t len,
                const char *after)
{
    struct silt_buf line;
    silt_buf_init(&line, 64 << 20);
    silt_buf_add(&line, silt_slice_of(before));
    memset(silt_buf_room(&line, len), 'x', len);
    line.len += len;
    silt_buf_add(&line, silt_slice_of(after));
    silt_parse_thread_start(rig.threads, &line, lane, &rig.listener);
    assert_null(line.data); /* it was taken */
}

static struct silt_fair_queue_turn in_lane(void)
{
    struct silt_fair_queue_turn lane = {.all = &rig.lanes, .user = &rig.user};
    assert_true(silt_fair_queue_turn_enter(&lane));
    return lane;
}

static void on_time(struct silt_timer *t)
{
    t->on_time = NULL;
}

TEST(the_loop_goes_on_while_a_thread_is_at_it_and_then_it_is_told)
{
    struct silt_timer timer = {.on_time = on_time};
    begin();
    struct silt_fair_queue_turn lane = in_lane();
    say(&lane, "{\"t\":\"result\",\"id\":7,\"text\":\"", 1 << 20, "\"}");
    assert_int_equal(lane.state, SILT_FAIR_QUEUE_TURN_OUT);
    assert_int_equal(rig.lanes.taken, 1);
    silt_loop_after(&rig.loop, &timer, 0);
    while (timer.on_time != NULL)
        assert_int_equal(silt_loop_turn(&rig.loop, 100, &e), 0);
    assert_int_equal(rig.heard, 0);
    assert_non_null(rig.listener.thread);
    open_gate();
    turn_until(&rig.open, &rig.heard);
    assert_int_equal(rig.word, SILT_KERNEL_RESULT);
    assert_int_equal(rig.told, strlen("\"text\":\"\"") + (1 << 20));
    assert_int_equal(rig.lanes.taken, 0);
    assert_int_equal(rig.user.taken, 0);
    end();
}

TEST(a_line_that_breaks_the_rules_is_told_as_such)
{
    begin();
    struct silt_fair_queue_turn lane = in_lane();
    say(&lane, "{\"t\":\"result\",\"id\":7,\"text\":\"", 1 << 20, "");
    open_gate();
    turn_until(&rig.open, &rig.refused);
    assert_int_equal(rig.heard, 0);
    assert_int_equal(rig.lanes.taken, 0);
    end();
}

TEST(who_leaves_hears_nothing_and_the_memory_counts_until_it_is_free)
{
    begin();
    struct silt_fair_queue_turn lane = in_lane();
    say(&lane, "{\"t\":\"error\",\"id\":7,\"ename\":\"", 1 << 20,
        "\",\"evalue\":\"\",\"traceback\":[]}");
    silt_parse_thread_leave(&rig.listener);
    silt_parse_thread_leave(&rig.listener);
    assert_int_equal(rig.lanes.taken, 1);
    assert_int_equal(rig.user.taken, 0); /* its user may be gone */
    say(&lane, "{\"t\":\"done\",\"id\":7,\"count\":1,\"x\":\"", 1 << 20, "\"}");
    open_gate();
    turn_until(&rig.open, &rig.heard);
    assert_int_equal(rig.word, SILT_KERNEL_DONE);
    assert_int_equal(rig.heard + rig.refused, 1);
    assert_int_equal(rig.lanes.taken, 0);
    end();
}
