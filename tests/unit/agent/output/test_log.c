/* SPDX-License-Identifier: Apache-2.0 */
/* Commands whose output goes to a log. */
#include "agent/output/log.h"
#include "agent/output/log_rate.h"
#include "unit/agent/reader.h"
#include "unit/agent/rig.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static struct rig_exec logged(const char *command)
{
    return (struct rig_exec){.command = command,
                             .mode = SILT_EXEC_PLAIN,
                             .cwd = "/tmp",
                             .env = "PATH=/usr/bin:/bin",
                             .flags = SILT_START_LOG,
                             .log = memfd_create("log", MFD_CLOEXEC)};
}

static void done(struct rig *r, struct rig_exec *x)
{
    (void)close(x->log);
    rig_free(x);
    if (r != NULL)
        rig_stop(r);
}

static void follow(struct rig *r, const struct rig_exec *x, uint64_t position)
{
    rig_say(r, SILT_AGENT_FOLLOW, x->id, &position, sizeof(position));
}

static struct silt_agent_logged expect_logged(struct rig *r, const struct rig_exec *x)
{
    struct rig_frame f;
    struct silt_agent_logged l;
    rig_expect(r, SILT_AGENT_LOGGED, x->id, &f);
    assert_int_equal(f.len, sizeof(l));
    memcpy(&l, f.body, sizeof(l));
    return l;
}

static void check_log(const struct rig_exec *x, const char *out, const char *err)
{
    char *got_out, *got_err;
    (void)reader_all(x->log, &got_out, &got_err);
    assert_string_equal(got_out, out);
    assert_string_equal(got_err, err);
    free(got_out);
    free(got_err);
}

TEST(logged_command_puts_its_output_and_its_end_into_the_log)
{
    RIG();
    struct rig_exec x = logged("echo out; echo err >&2; ls /proc/self/fd | tr '\n' ' '; exit 7");
    rig_run(r, &x);
    check_log(&x, "out\n0 1 2 3 ", "err\n");
    assert_int_equal(x.out_len + x.err_len, 0);
    assert_int_equal(x.end.code, 7);
    struct silt_log_head h = reader_head(x.log);
    assert_int_equal(h.ended, 1);
    assert_memory_equal(&h.end, &x.end, sizeof(x.end));
    assert_true(h.ended_ms >= h.started_ms && h.started_ms > 0);
    done(r, &x);
}

TEST(logged_command_of_a_session_has_its_state)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=1; f() { echo f$1; }", "", "");
    struct rig_exec x = logged("f $X; ls /proc/self/fd | tr '\n' ' '");
    x.mode = SILT_EXEC_BACKGROUND;
    x.session = s;
    rig_run(r, &x);
    check_log(&x, "f1\n0 1 2 3 ", "");
    done(r, &x);
}

TEST(logged_command_in_a_missing_directory_says_so_in_its_log)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = logged("echo no");
    x.mode = SILT_EXEC_BACKGROUND;
    x.session = s;
    x.cwd = "/nowhere";
    rig_run(r, &x);
    assert_int_equal(x.end.code, 1);
    assert_int_equal(x.end.flags, SILT_END_NO_CWD);
    check_log(&x, "", "Failed to change directory to '/nowhere'\n");
    assert_int_equal(reader_head(x.log).ended, 1);
    done(r, &x);
}

TEST(logged_tells_a_follower_once_when_there_is_more)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = logged("echo one; read line < /tmp/f; echo two; read line < /tmp/g");
    struct rig_exec made = logged("mkfifo /tmp/f /tmp/g");
    rig_run(r, &made);
    rig_send(r, &x);
    rig_until_started(r, &x);
    follow(r, &x, 0);
    struct silt_agent_logged l = expect_logged(r, &x);
    assert_int_equal(l.head, 40);
    assert_int_equal(l.tail, 0);
    follow(r, &x, 0); /* it is past that already: told at once */
    assert_int_equal(expect_logged(r, &x).head, 40);
    follow(r, &x, 40);
    assert_false(rig_hears(r, &f, 50));
    struct rig_exec go = logged("echo > /tmp/f");
    rig_send(r, &go);
    assert_int_equal(expect_logged(r, &x).head, 80);
    rig_until_ended(r, &go);
    done(NULL, &go);
    go = logged("echo > /tmp/g");
    rig_run(r, &go);
    rig_until_ended(r, &x);
    check_log(&x, "one\ntwo\n", "");
    done(NULL, &made);
    done(NULL, &go);
    done(r, &x);
}

TEST(logged_output_of_three_rings_never_waits_for_a_reader)
{
    RIG();
    struct rig_exec x = logged("seq 1 7000000");
    rig_run(r, &x);
    assert_int_equal(x.end.code, 0);
    struct silt_log_head h = reader_head(x.log);
    char *out, *err;
    (void)reader_all(x.log, &out, &err);
    assert_int_equal(h.dropped[0] + strlen(out), 54888896);
    assert_string_equal(out + strlen(out) - 16, "6999999\n7000000\n");
    long n = strtol(strchr(out, '\n') + 1, NULL, 10);
    for (char *at = strchr(out, '\n') + 1; *at != 0; n++) {
        assert_int_equal(strtol(at, &at, 10), n);
        at++;
    }
    assert_int_equal(n, 7000001);
    free(out);
    free(err);
    done(r, &x);
}

/* Reads all there is, then follows on. */
static uint64_t read_on(struct rig *r, struct reader *from, const struct rig_exec *x)
{
    static struct reader_record rec;
    uint64_t bytes = 0;
    int got;
    while ((got = reader_next(from, &rec)) == 1)
        bytes += rec.head.len;
    assert_int_equal(got, 0);
    if (!x->ended)
        follow(r, x, from->at);
    return bytes;
}

/* Until the log holds as much as it may hold unread; of that nobody is told. */
static void until_it_holds(struct rig *r, const struct rig_exec *x)
{
    struct rig_frame f;
    int64_t until = rig_now_us() + RIG_PATIENCE_MS * 1000LL;
    while (reader_head(x->log).head <= SILT_LOG_UNREAD_MAX && rig_now_us() < until)
        (void)poll(NULL, 0, 1);
    rig_say(r, SILT_AGENT_PING, 0, NULL, 0);
    rig_hear(r, &f);
    assert_int_equal(f.head.type, SILT_AGENT_PONG);
    assert_in_range(reader_head(x->log).head, SILT_LOG_UNREAD_MAX + 1, SILT_LOG_RING);
    assert_int_equal(reader_head(x->log).tail, 0);
}

TEST(logged_command_that_holds_loses_nothing_to_a_slow_reader)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = logged("seq 1 7000000");
    struct reader from = {.fd = x.log};
    uint64_t bytes = 0;
    x.flags |= SILT_START_HOLD;
    rig_send(r, &x);
    rig_until_started(r, &x);
    until_it_holds(r, &x);
    follow(r, &x, 0);
    while (!x.ended) {
        rig_hear(r, &f);
        bytes += read_on(r, &from, &x);
    }
    bytes += read_on(r, &from, &x);
    assert_int_equal(bytes, 54888896);
    assert_int_equal(x.end.code, 0);
    done(r, &x);
}

TEST(logged_command_that_holds_runs_free_after_detach)
{
    RIG();
    struct rig_exec x = logged("seq 1 7000000");
    x.flags |= SILT_START_HOLD;
    rig_send(r, &x);
    rig_until_started(r, &x);
    until_it_holds(r, &x);
    rig_say(r, SILT_AGENT_DETACH, x.id, NULL, 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 0);
    assert_true(reader_head(x.log).tail > 0);
    done(r, &x);
}

TEST(logged_command_lives_on_and_is_told_to_a_new_siltd)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = logged("seq 1 7000000; echo over >&2");
    uint64_t epoch = 2;
    x.flags |= SILT_START_HOLD;
    rig_send(r, &x);
    rig_until_started(r, &x);
    follow(r, &x, 1ULL << 40);
    rig_say(r, SILT_AGENT_HELLO, 0, &epoch, sizeof(epoch));
    rig_expect(r, SILT_AGENT_EXEC_INFO, x.id, &f);
    while (!x.ended) {
        rig_hear(r, &f);
        assert_int_not_equal(f.head.type, SILT_AGENT_LOGGED);
    }
    assert_int_equal(reader_head(x.log).ended, 1);
    done(r, &x);
}

TEST(logged_commands_that_are_loud_do_not_keep_others_waiting)
{
    RIG();
    struct rig_exec loud[3];
    for (int i = 0; i < 3; i++) {
        loud[i] = logged("exec cat /dev/zero");
        rig_send(r, &loud[i]);
        rig_until_started(r, &loud[i]);
    }
    struct rig_exec x = logged("echo hi");
    rig_run(r, &x);
    check_log(&x, "hi\n", "");
    struct silt_agent_kill k = {.signal = SIGKILL};
    for (int i = 0; i < 3; i++) {
        rig_say(r, SILT_AGENT_KILL, loud[i].id, &k, sizeof(k));
        rig_until_ended(r, &loud[i]);
        done(NULL, &loud[i]);
    }
    done(r, &x);
}

TEST(logged_commands_with_inputs_run_as_many_at_once_as_there_are_handles)
{
    enum { MANY = SILT_HANDLES_MAX - 1 };
    RIG();
    static struct rig_exec x[MANY];
    for (int i = 0; i < MANY; i++) {
        x[i] = logged("ulimit -n; read line; echo $line");
        x[i].flags |= SILT_START_STDIN;
        rig_send(r, &x[i]);
        rig_until_started(r, &x[i]);
    }
    for (int i = 0; i < MANY; i++) {
        struct silt_frame close_it = {
            .type = SILT_AGENT_STDIN, .id = x[i].id, .flags = SILT_STDIN_LAST};
        rig_say_frame(r, &close_it, 0);
        rig_until_ended(r, &x[i]);
        check_log(&x[i], "1024\n\n", "");
        done(NULL, &x[i]);
    }
    rig_stop(r);
}

/* What went into the log, in the money of pace.h. Pieces that were dropped count as bytes only. */
static uint64_t cost_of(const struct rig_exec *x)
{
    static struct reader_record rec;
    struct silt_log_head h = reader_head(x->log);
    struct reader from = {.fd = x->log, .at = h.tail};
    uint64_t cost = h.dropped[0] + h.dropped[1];
    while (reader_next(&from, &rec) == 1)
        cost += rec.head.len + SILT_LOG_RATE_PIECE;
    return cost;
}

/* By the log's own clock: on a busy machine it is less that goes in, never more. */
static void check_pace(const char *command)
{
    RIG();
    struct rig_exec x = logged(command);
    rig_run(r, &x);
    struct silt_log_head h = reader_head(x.log);
    uint64_t windows = (uint64_t)(h.ended_ms - h.started_ms + 2) / SILT_LOG_RATE_WINDOW_MS + 1;
    uint64_t most = SILT_LOG_RATE_WINDOW + SILT_LOG_RATE_PIECE + SILT_LOG_RECORD_MAX;
    assert_in_range(cost_of(&x), 1, windows * most);
    done(r, &x);
}

TEST(logged_commands_that_write_much_are_slowed_down)
{
    check_pace("head -c 50000000 /dev/zero & head -c 50000000 /dev/zero >&2 & wait");
}

TEST(logged_commands_that_write_often_are_slowed_down)
{
    check_pace("f() { for ((i = 0; i < 40000; i++)); do echo; done; }; f & f >&2 & wait");
}

TEST(logged_command_goes_on_when_its_peer_is_gone)
{
    RIG();
    struct rig_exec x = logged("sleep 0.1; seq 1 7000000; echo over >&2; sleep 100");
    x.flags |= SILT_START_HOLD;
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_cut(r);
    char *out, *err = NULL;
    for (int i = 0; i < 1000 && (err == NULL || strcmp(err, "over\n") != 0); i++) {
        free(err);
        (void)usleep(10000);
        (void)reader_all(x.log, &out, &err);
        free(out);
    }
    assert_string_equal(err, "over\n");
    free(err);
    done(r, &x);
}
