/* SPDX-License-Identifier: Apache-2.0 */
/* The question whether all that a command has written is in its log. */
#include "agent/exec/flush.h"
#include "agent/output/log.h"
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

static void start(struct rig *r, struct rig_exec *x)
{
    rig_send(r, x);
    rig_until_started(r, x);
}

static void ask(struct rig *r, const struct rig_exec *x)
{
    struct silt_frame ping = {.type = SILT_AGENT_PING, .flags = SILT_PING_FLUSH, .id = x->id};
    rig_say_frame(r, &ping, 0);
}

/* False: it ended instead. */
static bool is_answered(struct rig *r, const struct rig_exec *x)
{
    struct rig_frame f;
    do
        rig_hear(r, &f);
    while (f.head.type != SILT_AGENT_PONG && !x->ended);
    return f.head.type == SILT_AGENT_PONG;
}

/* In milliseconds. */
static int64_t answer_time(struct rig *r, const struct rig_exec *x)
{
    int64_t began_us = rig_now_us();
    ask(r, x);
    assert_true(is_answered(r, x));
    return (rig_now_us() - began_us) / 1000;
}

static size_t out_len(const struct rig_exec *x)
{
    char *out, *err;
    (void)reader_all(x->log, &out, &err);
    size_t len = strlen(out);
    free(out);
    free(err);
    return len;
}

static void finish(struct rig *r, struct rig_exec *x)
{
    struct silt_agent_kill k = {.signal = SIGKILL};
    if (!x->ended) {
        rig_say(r, SILT_AGENT_KILL, x->id, &k, sizeof(k));
        rig_until_ended(r, x);
    }
    (void)close(x->log);
    rig_free(x);
}

TEST(flush_of_a_short_command_has_all_that_it_says)
{
    RIG();
    for (int i = 0; i < 50; i++) {
        struct rig_exec x = logged("echo one; echo two | cat; seq 1 3");
        start(r, &x);
        ask(r, &x);
        (void)is_answered(r, &x);
        assert_int_equal(out_len(&x), strlen("one\ntwo\n1\n2\n3\n"));
        finish(r, &x);
    }
    rig_stop(r);
}

TEST(flush_of_a_command_of_a_session_has_all_that_it_says)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    for (int i = 0; i < 50; i++) {
        struct rig_exec x = logged("echo one; echo two | cat; seq 1 3");
        x.mode = SILT_EXEC_BACKGROUND;
        x.session = s;
        start(r, &x);
        ask(r, &x);
        (void)is_answered(r, &x);
        assert_int_equal(out_len(&x), strlen("one\ntwo\n1\n2\n3\n"));
        finish(r, &x);
    }
    rig_stop(r);
}

TEST(flush_empties_the_pipe_of_a_command_that_waits)
{
    RIG();
    struct rig_exec x = logged("seq 1 10000; seq 1 10000 >&2; exec sleep 100");
    start(r, &x);
    (void)answer_time(r, &x);
    assert_int_equal(out_len(&x), 48894);
    finish(r, &x);
    rig_stop(r);
}

/* The best of a few: the machine may be busy. */
static void check_quick(struct rig *r, const char *command)
{
    int64_t first = INT64_MAX, later = INT64_MAX;
    for (int i = 0; i < 10 && (first >= SILT_FLUSH_BEGIN_MS / 2 || later >= SILT_FLUSH_WORK_MS);
         i++) {
        struct rig_exec x = logged(command);
        start(r, &x);
        int64_t ms = answer_time(r, &x);
        first = ms < first ? ms : first;
        ms = answer_time(r, &x);
        later = ms < later ? ms : later;
        assert_false(x.ended);
        finish(r, &x);
    }
    assert_in_range(first, 0, SILT_FLUSH_BEGIN_MS / 2 - 1);
    assert_in_range(later, 0, SILT_FLUSH_WORK_MS - 1);
}

TEST(flush_does_not_wait_for_a_silent_command)
{
    RIG();
    check_quick(r, "exec sleep 100");
    check_quick(r, "while :; do :; done");
    check_quick(r, "while :; do /bin/true; done");
    rig_stop(r);
}

static void check_answers(struct rig *r, const char *command)
{
    struct rig_exec x = logged(command);
    start(r, &x);
    for (int i = 0; i < 20; i++) {
        ask(r, &x);
        assert_true(is_answered(r, &x));
    }
    finish(r, &x);
}

TEST(flush_of_a_command_that_writes_without_end_has_an_end)
{
    RIG();
    check_answers(r, "yes & exec yes >&2");
    check_answers(r, "while :; do echo; done");
    check_answers(r, "yes & exec cat < /proc/self/fd/1 > /dev/null"); /* it reads its pipe itself */
    rig_stop(r);
}

TEST(flush_does_not_wait_for_the_reader_that_a_command_waits_for)
{
    RIG();
    struct rig_exec x = logged("exec cat /dev/zero");
    x.flags |= SILT_START_HOLD;
    start(r, &x);
    int64_t until = rig_now_us() + RIG_PATIENCE_MS * 1000LL;
    while (reader_head(x.log).head <= SILT_LOG_UNREAD_MAX && rig_now_us() < until)
        (void)poll(NULL, 0, 1);
    (void)answer_time(r, &x);
    assert_int_equal(reader_head(x.log).tail, 0);
    rig_say(r, SILT_AGENT_DETACH, x.id, NULL, 0);
    finish(r, &x);
    rig_stop(r);
}

TEST(flush_of_what_is_not_there_is_answered_at_once)
{
    RIG();
    struct rig_frame f;
    struct rig_exec none = {.id = 12345};
    struct rig_exec plain = {.command = "exec sleep 100",
                             .mode = SILT_EXEC_PLAIN,
                             .cwd = "/tmp",
                             .env = "PATH=/bin",
                             .log = -1};
    ask(r, &none);
    rig_expect(r, SILT_AGENT_PONG, none.id, &f);
    start(r, &plain);
    ask(r, &plain); /* it has no log */
    rig_expect(r, SILT_AGENT_PONG, plain.id, &f);
    finish(r, &plain);
    rig_stop(r);
}

TEST(flush_is_not_answered_to_a_new_siltd_that_has_not_asked)
{
    RIG();
    struct rig_frame f;
    uint64_t epoch = 2;
    struct rig_exec x = logged("while :; do :; done");
    start(r, &x);
    ask(r, &x);
    rig_say(r, SILT_AGENT_HELLO, 0, &epoch, sizeof(epoch));
    rig_expect(r, SILT_AGENT_EXEC_INFO, x.id, &f);
    rig_expect(r, SILT_AGENT_READY, 0, &f);
    while (rig_hears(r, &f, SILT_FLUSH_WORK_MS * 4))
        assert_int_not_equal(f.head.type, SILT_AGENT_PONG);
    finish(r, &x);
    rig_stop(r);
}
