/* SPDX-License-Identifier: Apache-2.0 */
/* The ends that commands are given. */
#include "unit/agent/rig.h"

#include <poll.h>
#include <signal.h>

static struct rig_exec plain(const char *command)
{
    return (struct rig_exec){
        .command = command, .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/usr/bin:/bin"};
}

static void kill_exec(struct rig *r, struct rig_exec *x, uint32_t signal, uint32_t grace_ms)
{
    struct silt_agent_kill k = {.signal = signal, .grace_ms = grace_ms};
    rig_say(r, SILT_AGENT_KILL, x->id, &k, sizeof(k));
}

static void done(struct rig *r, struct rig_exec *x)
{
    rig_free(x);
    rig_stop(r);
}

/* One that obeys, one that does not obey and hides: the whole took SIGKILL. */
static void check_grace(struct rig *r)
{
    struct rig_exec x = plain("(setsid sh -c 'trap \"\" TERM; echo up; sleep 100; sleep 100' &); "
                              "sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    int64_t from = rig_now_us();
    kill_exec(r, &x, SIGTERM, 300);
    rig_until_ended(r, &x);
    assert_true(rig_now_us() - from >= 295000);
    assert_int_equal(x.end.code, 137);
    assert_int_equal(x.end.signal, SIGKILL);
    assert_int_equal(x.end.flags, 0);
    assert_int_equal(rig_count_all(r), 0);
    done(r, &x);
}

TEST(kill_with_a_grace_ends_what_hid_and_does_not_obey)
{
    RIG();
    check_grace(r);
}

TEST(kill_with_a_grace_ends_what_hid_in_version_2_groups)
{
    RIG(.mode = 2);
    check_grace(r);
}

TEST(kill_leaves_a_handle_that_can_be_used_again)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode, .handles = 1);
        for (int i = 0; i < 3; i++) {
            struct rig_exec x = plain("(setsid sleep 100 &); echo up; sleep 100");
            rig_send(r, &x);
            rig_until_out(r, &x, "up");
            kill_exec(r, &x, SIGKILL, 0);
            rig_until_ended(r, &x);
            assert_int_equal(x.end.code, 137);
            assert_int_equal(rig_count_all(r), 0);
            rig_free(&x);
        }
        rig_stop(r);
    }
}

TEST(kill_with_a_grace_is_over_as_soon_as_all_are_gone)
{
    RIG();
    struct rig_exec x = plain("for i in {1..50}; do (sleep 100 &); done; echo up; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    while (rig_count_all(r) < 51)
        ;
    kill_exec(r, &x, SIGTERM, 10 * RIG_PATIENCE_MS);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 143);
    assert_int_equal(rig_count_all(r), 0);
    done(r, &x);
}

TEST(kill_with_a_grace_kills_a_main_process_that_does_not_obey)
{
    RIG();
    struct rig_exec x = plain("trap 'echo heard' TERM; echo up; while :; do sleep 0.01; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGTERM, 200);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    assert_non_null(strstr(x.out, "heard"));
    done(r, &x);
}

TEST(kill_with_a_grace_waits_for_a_farewell)
{
    RIG();
    struct rig_exec x =
        plain("trap 'sleep 0.2; echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGTERM, 5000);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 3);
    assert_string_equal(x.out, "up\nbye\n");
    done(r, &x);
}

TEST(kill_with_a_grace_is_heard_by_who_stands_still)
{
    RIG();
    struct rig_exec x =
        plain("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGSTOP, 0);
    kill_exec(r, &x, SIGTERM, 5000);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 3);
    done(r, &x);
}

TEST(kill_that_is_harder_ends_the_grace)
{
    RIG();
    struct rig_exec x = plain("trap '' TERM; echo up; while :; do sleep 0.01; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    int64_t from = rig_now_us();
    kill_exec(r, &x, SIGTERM, 10 * RIG_PATIENCE_MS);
    kill_exec(r, &x, SIGTERM, 100);
    kill_exec(r, &x, SIGTERM, 10 * RIG_PATIENCE_MS);
    rig_until_ended(r, &x);
    assert_true(rig_now_us() - from >= 95000);
    rig_free(&x);
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGTERM, 10 * RIG_PATIENCE_MS);
    kill_exec(r, &x, SIGKILL, 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    done(r, &x);
}

/* Its command has ended, but not its output, of which the last bytes wait for credit. */
static void send_that_drains(struct rig *r, struct rig_exec *x)
{
    struct rig_frame f;
    struct rig_exec other = plain("true");
    x->keep_credit = true;
    rig_free(x);
    rig_send(r, x);
    while (x->out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    for (int64_t until = rig_now_us() + RIG_PATIENCE_MS * 1000LL;
         rig_count_all(r) > 1 && rig_now_us() < until;)
        (void)poll(NULL, 0, 1);
    rig_run(r, &other); /* its end is seen after that one's */
    rig_free(&other);
    assert_int_equal(rig_count_all(r), 1);
    assert_false(x->ended);
}

TEST(kill_while_the_output_drains_empties_the_handle_before_the_end)
{
    RIG();
    uint64_t credit = SILT_EXEC_WINDOW;
    struct rig_exec x = plain("(trap '' TERM; exec sleep 1000) & head -c 300000 /dev/zero; exit 4");
    for (int i = 0; i < 5; i++) {
        send_that_drains(r, &x);
        kill_exec(r, &x, SIGTERM, 50);
        rig_say(r, SILT_AGENT_CREDIT, x.id, &credit, sizeof(credit));
        rig_until_ended(r, &x);
        assert_int_equal(x.end.code, 4);
        assert_int_equal(x.out_len, 300000);
        assert_int_equal(rig_count_all(r), 0);
    }
    done(r, &x);
}

TEST(kill_at_any_moment_of_the_start_ends_it)
{
    RIG();
    for (int i = 0; i < 40; i++) {
        struct rig_exec x = plain("sleep 100");
        rig_send(r, &x);
        for (int64_t until = rig_now_us() + i * 50; rig_now_us() < until;)
            ;
        kill_exec(r, &x, SIGTERM, 5000);
        rig_until_ended(r, &x);
        if (!x.failed)
            assert_true(x.end.code == 143 || x.end.code == 137);
        assert_int_equal(rig_count_all(r), 0);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(every_signal_reaches_a_command)
{
    const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                           SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGRTMIN + 3};
    RIG();
    for (size_t i = 0; i < SILT_COUNT(signals); i++) {
        struct rig_exec x = plain(""); /* a shell would not mind SIGQUIT */
        x.flags = SILT_START_ARGV;
        x.args[0] = "sleep";
        x.args[1] = "100";
        rig_send(r, &x);
        rig_until_started(r, &x);
        kill_exec(r, &x, (uint32_t)signals[i], 0);
        rig_until_ended(r, &x);
        assert_int_equal(x.end.signal, signals[i]);
        assert_int_equal(x.end.code, 128 + signals[i]);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(closing_a_session_ends_its_commands_with_all_that_they_started)
{
    RIG(.handles = 8);
    uint64_t s = rig_open(r, "/tmp", NULL);
    uint64_t other = rig_open(r, "/tmp", NULL);
    struct rig_exec x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (struct rig_exec){
            .command =
                "(setsid sh -c 'trap \"\" TERM; sleep 100' &); trap '' TERM; echo up; sleep 100",
            .session = i < 2 ? s : other,
            .mode = SILT_EXEC_BACKGROUND};
        rig_send(r, &x[i]);
        rig_until_out(r, &x[i], "up");
    }
    rig_close(r, s);
    for (int i = 0; i < 2; i++) {
        assert_true(x[i].ended); /* said before CLOSED */
        assert_int_equal(x[i].end.code, 137);
        rig_free(&x[i]);
    }
    assert_false(x[2].ended);
    rig_close(r, other);
    rig_until_count(r, 0);
    done(r, &x[2]);
}

/* The session is free again: what was started last waits for a handle. Nobody gets the handles that
 * are asked for. */
static void until_idle(struct rig *r, uint64_t session)
{
    struct rig_frame f = {0};
    while (f.head.type != SILT_AGENT_ENDED) {
        struct rig_exec x = {.command = "true", .session = session, .mode = SILT_EXEC_FOREGROUND};
        rig_send(r, &x);
        do
            assert_true(rig_hears(r, &f, 4000));
        while (f.head.id != x.id
               || (f.head.type != SILT_AGENT_ENDED && f.head.type != SILT_AGENT_FAILED));
        rig_forget(r, &x);
        rig_free(&x);
    }
}

TEST(closing_a_session_fails_its_commands_that_wait_for_a_handle)
{
    RIG(.handles = 1);
    struct rig_frame f;
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (struct rig_exec){.command = "echo no", .session = s, .mode = SILT_EXEC_BACKGROUND};
        rig_send(r, &x[i]);
        until_idle(r, s);
    }
    rig_say(r, SILT_AGENT_CLOSE, s, NULL, 0);
    do
        assert_true(rig_hears(r, &f, 4000)); /* none of the handles that it asks for */
    while (f.head.type != SILT_AGENT_CLOSED);
    rig_stop(r);
}
