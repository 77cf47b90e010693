/* SPDX-License-Identifier: Apache-2.0 */
/* The talk with an interpreter process, whose part is played here at the other ends of real pipes.
 */
#include "sandbox/context/kernel_conn.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DEADLINE_MS = 60000, HEARD_MAX = 4096 };

static struct rig {
    struct silt_loop loop;
    struct silt_kernel kernel;
    int theirs[SILT_KERNEL_FDS];
    struct silt_fair_queue lanes;
    struct silt_fair_queue_user user;
    char heard[HEARD_MAX];         /* "1:output ", "2:output ", "3=line ", "1 closed: why " */
    size_t bytes[SILT_KERNEL_FDS]; /* of output */
    size_t longest;                /* line */
    int line_count, closed, finished;
    struct silt_buf long_line; /* that the owner has */
    bool full, stop_at_line, refuse_line, quiet, dwell;
} rig;
static struct silt_error e;

static void note(int n, const char *what, const char *text, size_t len)
{
    size_t used = strlen(rig.heard);
    if (!rig.quiet && used + len + 32 < HEARD_MAX)
        (void)snprintf(rig.heard + used, HEARD_MAX - used, "%d%s%.*s ", n, what, (int)len, text);
}

static void on_output(struct silt_kernel *k, int stream, silt_slice bytes)
{
    (void)k;
    assert_in_range(stream, SILT_KERNEL_OUT, SILT_KERNEL_ERR);
    rig.bytes[stream] += bytes.len;
    note(stream, ":", bytes.data, bytes.len);
}

static void on_line(struct silt_kernel *k, silt_slice line)
{
    rig.line_count++;
    rig.longest = line.len > rig.longest ? line.len : rig.longest;
    note(rig.line_count, "=", line.len > 0 ? line.data : "", line.len);
    if (rig.stop_at_line)
        silt_kernel_listen(k, false);
    if (rig.refuse_line)
        silt_kernel_refuse(k, "it lies");
}

static void on_long_line(struct silt_kernel *k, struct silt_buf *line)
{
    assert_true(k->busy && line->len > SILT_KERNEL_LONG);
    assert_null(rig.long_line.data);
    rig.long_line = *line;
    silt_buf_init(line, line->max);
}

/* The owner is done with it, as with any line. */
static void deal_with_long_line(void)
{
    struct silt_buf line = rig.long_line;
    bool quiet = rig.quiet;
    rig.long_line = (struct silt_buf){0};
    rig.quiet = true;
    on_line(&rig.kernel, silt_buf_slice(&line));
    free(line.data);
    rig.quiet = quiet;
    silt_kernel_go_on(&rig.kernel);
}

static void on_finished(struct silt_kernel *k)
{
    assert_true(k->ending && !k->busy);
    rig.finished++;
}

static bool is_full(struct silt_kernel *k)
{
    (void)k;
    return rig.full;
}

static void on_closed(struct silt_kernel *k, const char *why)
{
    (void)k;
    why = why != NULL ? why : "itself";
    rig.closed++;
    note(rig.closed, " closed: ", why, strlen(why));
}

static void begin(void)
{
    rig = (struct rig){.kernel = {.loop = &rig.loop,
                                  .lane = {.all = &rig.lanes, .user = &rig.user},
                                  .on_output = on_output,
                                  .on_line = on_line,
                                  .on_long_line = on_long_line,
                                  .on_finished = on_finished,
                                  .is_full = is_full,
                                  .on_closed = on_closed}};
    silt_fair_queue_init(&rig.lanes, SILT_KERNEL_LANES, SILT_KERNEL_LANES_EACH);
    assert_int_equal(silt_loop_open(&rig.loop, &e), 0);
    silt_kernel_init(&rig.kernel);
    assert_int_equal(silt_kernel_open(&rig.kernel, rig.theirs, &e), 0);
    silt_kernel_listen(&rig.kernel, true);
    (void)signal(SIGPIPE, SIG_IGN); /* as siltd does */
}

static void end(void)
{
    silt_kernel_close(&rig.kernel);
    silt_kernel_close(&rig.kernel);
    assert_int_equal(rig.lanes.taken, 0);
    assert_int_equal(rig.user.taken, 0);
    assert_true(silt_list_empty(&rig.lanes.waiting));
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&rig.theirs[i]);
    assert_int_equal(rig.loop.timers, 0);
    free(rig.long_line.data);
    silt_loop_close(&rig.loop);
}

static void put(int which, const char *text)
{
    assert_int_equal(silt_fd_write_all(rig.theirs[which], silt_slice_of(text), &e), 0);
}

/* Turns until nothing happens any more. */
static void settle(void)
{
    for (int i = 0; i < 200; i++) {
        assert_int_equal(silt_loop_turn(&rig.loop, 0, &e), 0);
        if (rig.long_line.data != NULL && !rig.dwell)
            deal_with_long_line();
    }
}

static void assert_heard(const char *want)
{
    settle();
    assert_string_equal(rig.heard, want);
    rig.heard[0] = 0;
}

TEST(output_that_was_written_before_a_line_is_told_before_it)
{
    begin();
    put(SILT_KERNEL_OUT, "a");
    put(SILT_KERNEL_ERR, "b");
    put(SILT_KERNEL_LINES, "{}\n");
    assert_heard("1:a 2:b 1={} ");
    put(SILT_KERNEL_LINES, "[]\n");
    put(SILT_KERNEL_OUT, "c");
    settle();
    assert_non_null(strstr(rig.heard, "2=[] "));
    assert_non_null(strstr(rig.heard, "1:c "));
    end();
}

TEST(all_that_a_pipe_holds_is_told_before_the_line_after_it)
{
    begin();
    rig.quiet = true;
    assert_int_equal(fcntl(rig.theirs[SILT_KERNEL_OUT], F_SETPIPE_SZ, 1 << 20), 1 << 20);
    assert_int_equal(fcntl(rig.theirs[SILT_KERNEL_OUT], F_SETFL, O_NONBLOCK), 0);
    static char many[1 << 20];
    memset(many, 'x', sizeof(many));
    assert_int_equal(write(rig.theirs[SILT_KERNEL_OUT], many, sizeof(many)), sizeof(many));
    rig.stop_at_line = true;
    put(SILT_KERNEL_LINES, "{}\n");
    settle();
    assert_int_equal(rig.bytes[SILT_KERNEL_OUT], sizeof(many));
    assert_int_equal(rig.line_count, 1);
    end();
}

TEST(lines_come_in_pieces_and_several_at_once)
{
    begin();
    put(SILT_KERNEL_LINES, "{\"a");
    settle();
    assert_int_equal(rig.kernel.line.len, 3);
    put(SILT_KERNEL_LINES, "\":");
    settle();
    assert_int_equal(rig.kernel.line.len, 5);
    put(SILT_KERNEL_LINES, "1}\n[1]\n\n[2]\n[");
    assert_heard("1={\"a\":1} 2=[1] 3= 4=[2] ");
    assert_int_equal(rig.kernel.line.len, 1);
    put(SILT_KERNEL_LINES, "]\n");
    assert_heard("5=[] ");
    assert_int_equal(rig.kernel.line.len, 0);
    assert_int_equal(rig.loop.timers, 0);
    end();
}

/* Writes as much as the rig takes; answers how much that was. */
static size_t flood(int which, size_t max)
{
    static char many[32 << 10];
    size_t sent = 0;
    memset(many, 'x', sizeof(many));
    assert_int_equal(fcntl(rig.theirs[which], F_SETFL, O_NONBLOCK), 0);
    for (int idle = 0; sent < max && idle < 3;) {
        size_t n = max - sent < sizeof(many) ? max - sent : sizeof(many);
        ssize_t wrote = write(rig.theirs[which], many, n);
        sent += wrote > 0 ? (size_t)wrote : 0;
        idle = wrote > 0 ? 0 : idle + 1;
        assert_int_equal(silt_loop_turn(&rig.loop, 0, &e), 0);
    }
    assert_int_equal(fcntl(rig.theirs[which], F_SETFL, 0), 0);
    return sent;
}

TEST(a_long_line_is_told_whole)
{
    begin();
    rig.quiet = true;
    size_t len = SILT_KERNEL_LINE_MAX;
    assert_int_equal(flood(SILT_KERNEL_LINES, len), len);
    put(SILT_KERNEL_LINES, "\n");
    settle();
    assert_int_equal(rig.line_count, 1);
    assert_int_equal(rig.longest, len);
    assert_int_equal(rig.closed, 0);
    end();
}

TEST(nothing_is_told_while_the_owner_has_a_long_line_and_nothing_is_lost)
{
    begin();
    rig.dwell = true;
    assert_int_equal(flood(SILT_KERNEL_LINES, SILT_KERNEL_LONG + 1), SILT_KERNEL_LONG + 1);
    put(SILT_KERNEL_LINES, "\n[1]\n[2]\n[3");
    settle();
    assert_non_null(rig.long_line.data);
    assert_int_equal(rig.long_line.len, SILT_KERNEL_LONG + 1);
    put(SILT_KERNEL_OUT, "after");
    put(SILT_KERNEL_LINES, "]\n");
    assert_heard("");
    assert_int_equal(rig.lanes.taken, 0); /* it was the owner's to take */
    assert_int_equal(rig.loop.timers, 0); /* and the time is not the kernel's */
    rig.dwell = false;
    deal_with_long_line();
    assert_heard("2=[1] 3=[2] 1:after 4=[3] ");
    assert_int_equal(rig.longest, SILT_KERNEL_LONG + 1);
    end();
}

TEST(last_words_wait_until_a_long_line_was_dealt_with)
{
    begin();
    rig.dwell = true;
    assert_int_equal(flood(SILT_KERNEL_LINES, SILT_KERNEL_LONG * 2), SILT_KERNEL_LONG * 2);
    put(SILT_KERNEL_LINES, "\n[1]\n");
    put(SILT_KERNEL_OUT, "a");
    settle();
    assert_non_null(rig.long_line.data);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&rig.theirs[i]);
    rig.heard[0] = 0; /* what was printed may come before the line ends */
    silt_kernel_finish(&rig.kernel);
    assert_heard("");
    assert_int_equal(rig.finished, 0);
    rig.dwell = false;
    deal_with_long_line();
    settle();
    assert_non_null(strstr(rig.heard, "2=[1] 1 closed: itself "));
    assert_int_equal(rig.bytes[SILT_KERNEL_OUT], 1);
    assert_int_equal(rig.finished, 1);
    end();
}

TEST(who_closes_while_a_long_line_is_dealt_with_hears_nothing_more)
{
    begin();
    rig.dwell = true;
    assert_int_equal(flood(SILT_KERNEL_LINES, SILT_KERNEL_LONG * 2), SILT_KERNEL_LONG * 2);
    put(SILT_KERNEL_LINES, "\n[1]\n");
    settle();
    assert_non_null(rig.long_line.data);
    silt_kernel_close(&rig.kernel);
    assert_heard("");
    assert_int_equal(rig.finished, 0);
    end();
}

TEST(a_line_that_is_too_long_ends_the_talk_once)
{
    begin();
    size_t sent = flood(SILT_KERNEL_LINES, (size_t)SILT_KERNEL_LINE_MAX * 2);
    assert_in_range(sent, SILT_KERNEL_LINE_MAX, SILT_KERNEL_LINE_MAX + (2 << 20));
    assert_heard("1 closed: a line without an end ");
    assert_int_equal(rig.line_count, 0);
    assert_int_equal(rig.loop.timers, 0);
    end();
}

TEST(the_last_piece_can_make_a_line_too_long)
{
    begin();
    rig.quiet = true;
    assert_int_equal(flood(SILT_KERNEL_LINES, SILT_KERNEL_LINE_MAX), SILT_KERNEL_LINE_MAX);
    settle();
    put(SILT_KERNEL_LINES, "x\n{}\n");
    settle();
    assert_int_equal(rig.closed, 1);
    assert_int_equal(rig.line_count, 0);
    end();
}

TEST(a_long_line_waits_for_a_lane_and_is_told_when_there_is_one)
{
    struct silt_fair_queue_user other = {0};
    struct silt_fair_queue_turn theirs[SILT_KERNEL_LANES];
    begin();
    rig.quiet = true;
    rig.lanes.each_max = SILT_KERNEL_LANES;
    for (int i = 0; i < SILT_KERNEL_LANES; i++) {
        theirs[i] = (struct silt_fair_queue_turn){.all = &rig.lanes, .user = &other};
        assert_true(silt_fair_queue_turn_enter(&theirs[i]));
    }
    put(SILT_KERNEL_LINES, "{}\n"); /* short ones need none */
    settle();
    assert_int_equal(rig.line_count, 1);
    size_t sent = flood(SILT_KERNEL_LINES, 8 << 20);
    assert_in_range(sent, SILT_KERNEL_SHORT, 2 << 20); /* what it and the socket hold */
    assert_int_equal(rig.kernel.lane.state, SILT_FAIR_QUEUE_TURN_WAITING);
    assert_int_equal(rig.loop.timers, 0); /* the wait is not its fault */
    silt_fair_queue_turn_leave(&theirs[3]);
    assert_int_equal(rig.kernel.lane.state, SILT_FAIR_QUEUE_TURN_IN);
    assert_int_equal(rig.loop.timers, 1);
    settle();
    put(SILT_KERNEL_LINES, "\n");
    settle();
    assert_int_equal(rig.line_count, 2);
    assert_int_equal(rig.longest, sent);
    assert_int_equal(rig.lanes.taken, SILT_KERNEL_LANES - 1);
    for (int i = 0; i < SILT_KERNEL_LANES; i++)
        silt_fair_queue_turn_leave(&theirs[i]);
    end();
}

TEST(a_long_line_is_read_to_its_end_also_when_nobody_listens)
{
    begin();
    rig.quiet = true;
    size_t len = SILT_KERNEL_SHORT * 2;
    assert_int_equal(flood(SILT_KERNEL_LINES, len), len);
    settle();
    assert_int_equal(rig.kernel.lane.state, SILT_FAIR_QUEUE_TURN_IN);
    silt_kernel_listen(&rig.kernel, false);
    assert_int_equal(rig.loop.timers, 1); /* its lane is not for ever */
    put(SILT_KERNEL_OUT, "kept");
    put(SILT_KERNEL_LINES, "\n");
    settle();
    assert_int_equal(rig.line_count, 1);
    put(SILT_KERNEL_LINES, "{}\n");
    settle();
    assert_int_equal(rig.line_count, 1);
    assert_int_equal(rig.bytes[SILT_KERNEL_OUT], 0);
    assert_int_equal(rig.loop.timers, 0);
    end();
}

TEST(an_end_gives_the_lane_back)
{
    begin();
    size_t len = SILT_KERNEL_SHORT * 2;
    assert_int_equal(flood(SILT_KERNEL_LINES, len), len);
    settle();
    assert_int_equal(rig.lanes.taken, 1);
    silt_kernel_refuse(&rig.kernel, "it lies");
    assert_int_equal(rig.lanes.taken, 0);
    assert_int_equal(rig.loop.timers, 0);
    end();
}

/* As if the time were over. */
static void lose_patience(void)
{
    assert_true(rig.kernel.patience.place > 0);
    silt_loop_after(&rig.loop, &rig.kernel.patience, 0);
}

TEST(a_line_that_never_ends_ends_the_talk)
{
    begin();
    put(SILT_KERNEL_LINES, "{");
    settle();
    assert_in_range(rig.kernel.patience.at_ms, silt_clock_ms() + 1,
                    silt_clock_ms() + SILT_KERNEL_LINE_MS);
    int64_t first = rig.kernel.patience.at_ms;
    put(SILT_KERNEL_LINES, "x");
    settle();
    assert_int_equal(rig.kernel.patience.at_ms, first); /* a byte now and then buys no time */
    lose_patience();
    assert_heard("1 closed: a line that does not end ");
    put(SILT_KERNEL_LINES, "}\n");
    assert_heard("");
    end();
}

TEST(time_runs_only_while_the_rest_of_a_line_is_read)
{
    begin();
    put(SILT_KERNEL_LINES, "{");
    settle();
    rig.full = true;
    put(SILT_KERNEL_LINES, "\"");
    settle();
    assert_true(rig.kernel.held);
    assert_int_equal(rig.loop.timers, 0);
    rig.full = false;
    silt_kernel_resume(&rig.kernel);
    assert_int_equal(rig.loop.timers, 1);
    settle();
    silt_kernel_listen(&rig.kernel, false);
    assert_int_equal(rig.loop.timers, 0);
    silt_kernel_listen(&rig.kernel, true);
    assert_int_equal(rig.loop.timers, 1);
    put(SILT_KERNEL_LINES, "a\":1}\n");
    assert_heard("1={\"a\":1} ");
    assert_int_equal(rig.loop.timers, 0);
    end();
}

TEST(who_has_enough_gets_nothing_until_they_resume)
{
    begin();
    rig.full = true;
    put(SILT_KERNEL_OUT, "a");
    put(SILT_KERNEL_LINES, "{}\n");
    assert_heard("");
    silt_kernel_resume(&rig.kernel); /* still full */
    assert_heard("");
    rig.full = false;
    silt_kernel_resume(&rig.kernel);
    assert_heard("1:a 1={} ");
    end();
}

TEST(a_writer_waits_while_nobody_reads)
{
    begin();
    rig.quiet = true;
    rig.full = true;
    size_t sent = flood(SILT_KERNEL_OUT, 64 << 20);
    assert_in_range(sent, 1, 1 << 20);
    rig.full = false;
    silt_kernel_resume(&rig.kernel);
    settle();
    assert_int_equal(rig.bytes[SILT_KERNEL_OUT], sent);
    end();
}

TEST(without_listening_everything_stays_where_it_is)
{
    begin();
    silt_kernel_listen(&rig.kernel, false);
    put(SILT_KERNEL_ERR, "a");
    put(SILT_KERNEL_LINES, "{}\n");
    assert_heard("");
    silt_kernel_listen(&rig.kernel, true);
    assert_heard("2:a 1={} ");
    end();
}

TEST(lines_of_one_piece_are_told_also_when_the_first_was_waited_for)
{
    begin();
    rig.stop_at_line = true;
    put(SILT_KERNEL_LINES, "[1]\n[2]\n[");
    assert_heard("1=[1] 2=[2] ");
    assert_int_equal(rig.loop.timers, 0); /* the rest is waited for when somebody listens */
    put(SILT_KERNEL_LINES, "3]\n");
    assert_heard("");
    silt_kernel_listen(&rig.kernel, true);
    assert_heard("3=[3] ");
    end();
}

TEST(nothing_is_heard_after_a_line_that_was_refused)
{
    begin();
    rig.refuse_line = true;
    put(SILT_KERNEL_LINES, "[1]\n[2]\n");
    assert_heard("1=[1] 1 closed: it lies ");
    put(SILT_KERNEL_LINES, "[3]\n");
    put(SILT_KERNEL_OUT, "a");
    assert_heard("");
    silt_kernel_finish(&rig.kernel);
    assert_heard("");
    end();
}

TEST(the_end_of_the_lines_is_told_once_also_in_the_middle_of_a_line)
{
    begin();
    put(SILT_KERNEL_OUT, "last words");
    put(SILT_KERNEL_LINES, "[1]\n{\"half");
    silt_close_fd(&rig.theirs[SILT_KERNEL_LINES]);
    assert_heard("1:last words 1=[1] 1 closed: itself ");
    assert_int_equal(rig.loop.timers, 0);
    silt_kernel_finish(&rig.kernel);
    assert_heard("");
    end();
}

TEST(closed_output_is_no_end_and_keeps_nobody_busy)
{
    begin();
    silt_close_fd(&rig.theirs[SILT_KERNEL_OUT]);
    silt_close_fd(&rig.theirs[SILT_KERNEL_ERR]);
    put(SILT_KERNEL_LINES, "{}\n");
    assert_heard("1={} ");
    uint64_t before = rig.loop.turns;
    assert_int_equal(silt_loop_turn(&rig.loop, 20, &e), 0);
    assert_int_equal(rig.loop.turns, before + 1);
    int fds[SILT_KERNEL_FDS];
    silt_kernel_fds(&rig.kernel, fds);
    assert_int_equal(fds[SILT_KERNEL_OUT], -1);
    end();
}

TEST(a_dead_process_has_left_what_it_had_said)
{
    begin();
    rig.full = true; /* nobody is asked any more */
    put(SILT_KERNEL_OUT, "a");
    put(SILT_KERNEL_ERR, "b");
    put(SILT_KERNEL_LINES, "[1]\n[2]\n");
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&rig.theirs[i]);
    silt_kernel_finish(&rig.kernel);
    assert_string_equal(rig.heard, "1:a 2:b 1=[1] 2=[2] 1 closed: itself ");
    assert_int_equal(rig.finished, 1);
    end();
}

TEST(a_writer_that_outlives_its_process_does_not_hold_us)
{
    begin();
    rig.quiet = true;
    put(SILT_KERNEL_OUT, "a");
    int64_t from = silt_clock_ms();
    silt_kernel_finish(&rig.kernel); /* every other end is still open */
    assert_true(silt_clock_ms() - from < DEADLINE_MS / 10);
    assert_int_equal(rig.bytes[SILT_KERNEL_OUT], 1);
    assert_int_equal(rig.closed, 0);
    assert_int_equal(rig.finished, 1);
    end();
}

/* Who has the pipe of a process that is gone, and talks and talks. */
TEST(a_talker_that_outlives_its_process_does_not_put_off_its_end)
{
    static char text[300 << 10];
    begin();
    rig.quiet = true;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\n';
    assert_int_equal(fcntl(rig.theirs[SILT_KERNEL_LINES], F_SETFL, O_NONBLOCK), 0);
    silt_kernel_listen(&rig.kernel, false);
    for (int i = 0; i < 100 && rig.finished == 0; i++) {
        for (int n = 0; n < 8; n++)
            (void)!write(rig.theirs[SILT_KERNEL_LINES], text, sizeof(text));
        if (i == 0)
            silt_kernel_finish(&rig.kernel);
        else if (rig.long_line.data != NULL)
            deal_with_long_line();
    }
    assert_int_equal(rig.finished, 1);
    end();
}

/* ---- what is sent ---- */

static void send_bytes(size_t len, char byte)
{
    silt_auto_buf b;
    silt_buf_init(&b, 128 << 20);
    char *at = silt_buf_room(&b, len);
    assert_non_null(at);
    memset(at, byte, len);
    b.len = len;
    silt_kernel_send(&rig.kernel, &b);
    assert_int_equal(b.len, 0);
}

static size_t take_all(char byte)
{
    static char some[64 << 10];
    size_t all = 0;
    assert_int_equal(fcntl(rig.theirs[SILT_KERNEL_REQUESTS], F_SETFL, O_NONBLOCK), 0);
    for (int idle = 0; idle < 3;) {
        ssize_t n = read(rig.theirs[SILT_KERNEL_REQUESTS], some, sizeof(some));
        for (ssize_t i = 0; byte != 0 && i < n; i++)
            if (some[i] != byte)
                fail_msg("byte %zu is another one", all + (size_t)i);
        all += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        assert_int_equal(silt_loop_turn(&rig.loop, 0, &e), 0);
    }
    return all;
}

TEST(what_is_sent_waits_for_a_slow_reader_and_stays_in_order)
{
    begin();
    send_bytes(8 << 20, 'a');
    send_bytes(5, 'a');
    assert_true(rig.kernel.unsent.len > 0);
    assert_int_equal(take_all('a'), (8 << 20) + 5);
    assert_int_equal(rig.kernel.unsent.len, 0);
    send_bytes(3, 'b');
    assert_int_equal(take_all('b'), 3);
    assert_heard("");
    end();
}

TEST(a_short_line_that_waits_leaves_room_for_a_long_one)
{
    silt_auto_buf ping;
    begin();
    send_bytes(1 << 20, 'a');
    size_t taken = take_all('a');
    assert_int_equal(taken, 1 << 20);
    assert_int_equal(fcntl(rig.theirs[SILT_KERNEL_REQUESTS], F_SETPIPE_SZ, 4096), 4096);
    silt_buf_init(&ping, 64 << 10);
    char *at = silt_buf_room(&ping, 64 << 10);
    memset(at, 'a', 64 << 10);
    ping.len = 64 << 10;
    silt_kernel_send(&rig.kernel, &ping); /* its own ceiling is not that of what waits */
    assert_true(rig.kernel.unsent.len > 0);
    send_bytes(1 << 20, 'a');
    assert_int_equal(rig.closed, 0);
    assert_int_equal(take_all('a'), (64 << 10) + (1 << 20));
    end();
}

TEST(a_peer_that_does_not_read_ends_the_talk_once)
{
    begin();
    for (int i = 0; i < 3; i++)
        send_bytes(60 << 20, 'a');
    assert_heard("1 closed: it does not read ");
    assert_false(rig.kernel.listening);
    end();
}

TEST(what_is_sent_to_a_closed_peer_is_dropped)
{
    begin();
    silt_close_fd(&rig.theirs[SILT_KERNEL_REQUESTS]);
    send_bytes(1 << 20, 'a');
    assert_int_equal(rig.kernel.unsent.len, 0);
    put(SILT_KERNEL_LINES, "[1]\n"); /* what it still has to say is heard */
    assert_heard("1=[1] ");
    send_bytes(1 << 20, 'a');
    assert_heard("");
    end();
}

TEST(a_closed_kernel_can_be_opened_again)
{
    begin();
    put(SILT_KERNEL_LINES, "{");
    settle();
    silt_kernel_close(&rig.kernel);
    assert_int_equal(rig.kernel.line.len, 0);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&rig.theirs[i]);
    silt_kernel_init(&rig.kernel);
    assert_int_equal(silt_kernel_open(&rig.kernel, rig.theirs, &e), 0);
    silt_kernel_listen(&rig.kernel, true);
    put(SILT_KERNEL_LINES, "[]\n");
    assert_heard("1=[] ");
    end();
}

/* Its ends are the guest's, with all that can be done to them. */
TEST(all_ends_are_pipes_and_ours_never_wait_whatever_is_done_to_theirs)
{
    struct stat st;
    begin();
    for (int i = 0; i < SILT_KERNEL_FDS; i++) {
        int ours = rig.kernel.ends[i].watch.fd;
        assert_int_equal(fcntl(rig.theirs[i], F_SETFL, 0), 0);
        assert_true((fcntl(ours, F_GETFL) & O_NONBLOCK) != 0);
        assert_int_equal(fcntl(ours, F_GETFL) & O_ACCMODE,
                         i == SILT_KERNEL_REQUESTS ? O_WRONLY : O_RDONLY);
        assert_int_equal(fstat(rig.theirs[i], &st), 0);
        assert_true(S_ISFIFO(st.st_mode));
        assert_int_equal(st.st_mode & 0777,
                         i == SILT_KERNEL_OUT || i == SILT_KERNEL_ERR ? 0622 : 0600);
    }
    end();
}

/* A pipe that its process has opened again for both ways never ends: that of its exec is what
 * counts. */
TEST(a_guest_that_reads_its_own_lines_and_answers_its_own_requests_harms_itself)
{
    char path[64], text[16];
    begin();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", rig.theirs[SILT_KERNEL_LINES]);
    int lines = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", rig.theirs[SILT_KERNEL_REQUESTS]);
    int requests = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    assert_true(lines >= 0 && requests >= 0);
    put(SILT_KERNEL_LINES, "[1]\n");
    assert_int_equal(read(lines, text, sizeof(text)), 4);
    silt_close_fd(&rig.theirs[SILT_KERNEL_LINES]);
    silt_close_fd(&rig.theirs[SILT_KERNEL_REQUESTS]);
    assert_int_equal(write(requests, "x", 1), 1);
    send_bytes(1 << 20, 'a');
    assert_heard("");
    silt_kernel_finish(&rig.kernel);
    assert_int_equal(rig.finished, 1);
    (void)close(lines);
    (void)close(requests);
    end();
}
