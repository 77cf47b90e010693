/* SPDX-License-Identifier: Apache-2.0 */
/* Who is found in the control groups, and the end of all of them. */
#include "unit/agent/rig.h"

#include <signal.h>
#include <sys/wait.h>

enum { SWEEP = 815, ADOPTED = 4711 };

struct swept {
    unsigned told; /* by FOUND */
    struct silt_agent_swept end;
    struct silt_agent_found last;
    char text[SILT_FOUND_TEXT_MAX + 1];
};

static void take_found(struct swept *s, const struct rig_frame *f)
{
    for (size_t at = 0; at < f->len; at += s->last.text_len) {
        assert_true(f->len - at >= sizeof(s->last));
        memcpy(&s->last, f->body + at, sizeof(s->last));
        at += sizeof(s->last);
        assert_true(s->last.text_len <= SILT_FOUND_TEXT_MAX && s->last.text_len <= f->len - at);
        memcpy(s->text, f->body + at, s->last.text_len);
        s->text[s->last.text_len] = 0;
        s->told++;
    }
}

static struct swept sweep(struct rig *r, int32_t pid, uint32_t signal, uint32_t grace_ms)
{
    struct silt_agent_sweep how = {.pid = pid, .signal = signal, .grace_ms = grace_ms};
    struct swept s = {0};
    struct rig_frame f;
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &how, sizeof(how));
    for (rig_hear(r, &f); f.head.type != SILT_AGENT_SWEPT; rig_hear(r, &f))
        if (f.head.type == SILT_AGENT_FOUND)
            take_found(&s, &f);
    assert_int_equal(f.len, sizeof(s.end));
    memcpy(&s.end, f.body, sizeof(s.end));
    return s;
}

/* Looking ends nobody; the shell of a session that waits is not told of, and stays. */
TEST(sweep_ends_what_commands_left_and_leaves_the_shell)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode);
        uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
        int32_t shell = rig_shell_pid(r);
        (void)rig_check(r, session, "X=1; (setsid sleep 1000 &); sleep 1000 & :", "", "");
        rig_until_count(r, 3);
        struct swept s = sweep(r, 0, 0, 0);
        assert_int_equal(s.told, 2);
        assert_int_equal(s.end.found, 2);
        assert_int_equal(s.last.in, SILT_FOUND_SHELL);
        assert_true(s.last.owner == session);
        assert_string_equal(s.text, "sleep 1000");
        assert_int_equal(rig_count_all(r), 3);
        s = sweep(r, 0, SIGTERM, 1000);
        assert_int_equal(s.end.found, 2);
        assert_int_equal(s.end.left, 0);
        assert_int_equal(rig_count_all(r), 1);
        assert_int_equal(rig_shell_pid(r), shell);
        (void)rig_check(r, session, "echo $X", "1\n", "");
        rig_stop(r);
    }
}

TEST(sweep_kills_what_forks_as_fast_as_it_is_killed)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode, .pids = mode == 1 ? 64 : 0);
        uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
        (void)rig_check(r, session,
                        "f() { trap '' TERM; while :; do (trap '' TERM; sleep 0.02) & sleep 0.001; "
                        "done; }; for i in 1 2 3 4; do f & done 2>/dev/null",
                        "", "");
        rig_until_crowd(r, 8);
        struct swept s = sweep(r, 0, SIGTERM, 50);
        assert_int_equal(s.end.left, 0);
        assert_int_equal(rig_count_all(r), 1);
        rig_stop(r);
    }
}

/* One with less time does not wait for one with more, neither for a session's group nor for one
 * that was left. */
TEST(sweep_that_is_harder_ends_the_grace_of_another)
{
    struct silt_agent_sweep slow = {.signal = SIGTERM, .grace_ms = 10 * RIG_PATIENCE_MS};
    const char *stubborn = "(trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 &)";
    RIG();
    uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
    struct rig_exec x = {
        .command = stubborn, .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/usr/bin:/bin"};
    struct rig_frame f;
    (void)rig_check(r, session, stubborn, "", "");
    rig_run(r, &x);
    rig_free(&x);
    rig_until_count(r, 3);
    rig_say(r, SILT_AGENT_SWEEP, SWEEP + 1, &slow, sizeof(slow));
    struct silt_agent_sweep hard = {.signal = SIGTERM, .grace_ms = 50};
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &hard, sizeof(hard));
    bool first = false, second = false;
    while (!first || !second) {
        rig_hear(r, &f);
        first = first || (f.head.type == SILT_AGENT_SWEPT && f.head.id == SWEEP + 1);
        second = second || (f.head.type == SILT_AGENT_SWEPT && f.head.id == SWEEP);
    }
    assert_int_equal(rig_count_all(r), 1);
    rig_stop(r);
}

TEST(sweep_of_one_ends_it_alone_and_never_a_shell)
{
    RIG();
    uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
    (void)rig_check(r, session, "sleep 1000 & sleep 1001 & :", "", "");
    rig_until_count(r, 3);
    struct swept s = sweep(r, 0, 0, 0);
    s = sweep(r, s.last.pid, SIGTERM, 1000);
    assert_int_equal(s.told, 1);
    assert_int_equal(s.end.left, 0);
    assert_int_equal(rig_count_all(r), 2);
    s = sweep(r, rig_shell_pid(r), SIGKILL, 0);
    assert_int_equal(s.end.found, 0);
    s = sweep(r, 1, SIGKILL, 0);
    assert_int_equal(s.end.found, 0);
    assert_int_equal(rig_count_all(r), 2);
    rig_stop(r);
}

/* A context is there for what comes next, as a shell is; its children are not. */
TEST(sweep_leaves_the_first_process_of_a_context)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode);
        pid_t pid =
            rig_adopt(r, ADOPTED, "setsid sleep 1000 & setsid sleep 1000 & exec sleep 1001");
        rig_until_count(r, 3);
        struct swept s = sweep(r, 0, SIGTERM, 1000);
        assert_int_equal(s.end.found, 2);
        assert_int_equal(s.end.left, 0);
        assert_int_equal(s.last.in, SILT_FOUND_EXEC);
        assert_true(s.last.owner == ADOPTED);
        assert_int_equal(rig_count_all(r), 1);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid); /* before its namespace can go */
        rig_stop(r);
    }
}

TEST(sweep_ends_a_command_and_gives_the_session_its_state_back)
{
    RIG();
    uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
    (void)rig_check(r, session, "X=before", "", "");
    struct rig_exec x = {.command = "X=after; echo up; sleep 1000; echo on",
                         .mode = SILT_EXEC_FOREGROUND,
                         .session = session,
                         .timeout_ms = 600000};
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    struct swept s = sweep(r, 0, SIGTERM, 1000);
    assert_int_equal(s.end.left, 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    assert_int_equal(x.end.flags, SILT_END_RESTARTED);
    assert_string_equal(x.out, "up\n");
    (void)rig_check(r, session, "echo $X", "before\n", "");
    rig_free(&x);
    rig_stop(r);
}

/* The group is not the session's own: the command that left it had one for itself. */
TEST(close_of_a_session_ends_what_its_background_commands_left)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode);
        uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
        struct rig_exec x = {.command = "(trap '' HUP TERM; setsid sleep 1000 >/dev/null 2>&1 &)",
                             .mode = SILT_EXEC_BACKGROUND,
                             .session = session};
        rig_run(r, &x);
        rig_free(&x);
        struct rig_frame f;
        rig_say(r, SILT_AGENT_CLOSE, session, NULL, 0);
        rig_expect(r, SILT_AGENT_CLOSED, session, &f);
        rig_until_count(r, 0); /* the shell that was kept for the next command goes by itself */
        rig_stop(r);
    }
}

/* siltd tells a command that it has a record of first: a second SIGTERM means "at once" to many
 * programs. */
TEST(sweep_does_not_signal_again_what_was_told_to_end)
{
    struct silt_agent_kill gently = {.signal = SIGTERM, .grace_ms = RIG_PATIENCE_MS};
    struct silt_agent_sweep all = {.signal = SIGTERM, .grace_ms = RIG_PATIENCE_MS};
    RIG();
    struct rig_exec x = {
        .command =
            "n=0; trap 'n=$((n+1)); echo term$n' TERM; trap 'echo end$n; exit' URG; echo up; "
            "while :; do sleep 0.01; done",
        .mode = SILT_EXEC_PLAIN,
        .cwd = "/tmp",
        .env = "PATH=/usr/bin:/bin"};
    struct silt_agent_kill last = {.signal = SIGURG, .target = SILT_KILL_LEADER};
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    rig_say(r, SILT_AGENT_KILL, x.id, &gently, sizeof(gently));
    rig_until_out(r, &x, "term1");
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &all, sizeof(all));
    rig_say(r, SILT_AGENT_KILL, x.id, &last,
            sizeof(last)); /* behind the sweep; the shell deals with it behind SIGTERM */
    rig_until_ended(r, &x);
    assert_non_null(strstr(x.out, "end1\n"));
    rig_free(&x);
    rig_stop(r);
}

/* A new siltd does not know of the one that waits. */
TEST(second_command_that_comes_while_a_session_is_swept_is_refused)
{
    struct silt_agent_sweep slow = {.signal = SIGTERM, .grace_ms = 10 * RIG_PATIENCE_MS};
    struct silt_agent_sweep hard = {.signal = SIGKILL};
    RIG();
    uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
    (void)rig_check(r, session, "(trap '' TERM; setsid sleep 1000 >/dev/null 2>&1 &)", "", "");
    rig_until_count(r, 2);
    struct rig_exec first = {
        .command = "echo first", .mode = SILT_EXEC_FOREGROUND, .session = session};
    struct rig_exec second = {
        .command = "echo second", .mode = SILT_EXEC_FOREGROUND, .session = session};
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &slow, sizeof(slow));
    rig_send(r, &first);
    rig_send(r, &second);
    rig_until_ended(r, &second);
    assert_true(second.failed && second.error.code == SILT_CONFLICT);
    rig_say(r, SILT_AGENT_SWEEP, SWEEP + 1, &hard, sizeof(hard));
    rig_until_ended(r, &first);
    assert_string_equal(first.out, "first\n");
    rig_free(&first);
    rig_free(&second);
    rig_stop(r);
}

/* silt-init reads both frames in one turn of its loop. */
TEST(sweep_leaves_the_command_that_follows_it_at_once)
{
    struct silt_agent_sweep all = {.signal = SIGKILL};
    RIG();
    uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
    (void)rig_check(r, session, "sleep 1000 & X=1", "", "");
    struct rig_exec x = {.command = "echo $X", .mode = SILT_EXEC_FOREGROUND, .session = session};
    assert_int_equal(kill(rig_pid(r), SIGSTOP), 0);
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &all, sizeof(all));
    rig_send(r, &x);
    assert_int_equal(kill(rig_pid(r), SIGCONT), 0);
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "1\n");
    assert_int_equal(x.end.flags, 0);
    rig_until_count(r, 1);
    rig_free(&x);
    rig_stop(r);
}

static void sweep_now_and_expect_later(struct rig *r)
{
    struct silt_agent_sweep all = {.signal = SIGKILL}, look = {0};
    struct rig_frame f;
    rig_say(r, SILT_AGENT_SWEEP, SWEEP, &all, sizeof(all));
    rig_say(r, SILT_AGENT_SWEEP, SWEEP + 1, &look, sizeof(look));
    rig_expect(r, SILT_AGENT_SWEPT, SWEEP + 1, &f); /* so the one before has begun */
}

/* Its group is swept when the shell is idle again, and what is sent after that stays. */
static void follow_a_sweep(struct rig *r, uint64_t session, struct rig_exec *before)
{
    struct rig_exec x = {
        .command = "sleep 0.05; echo $X", .mode = SILT_EXEC_FOREGROUND, .session = session};
    rig_until_ended(r, before);
    rig_send(r, &x);
    rig_until_ended(r, &x);
    assert_false(x.failed);
    assert_int_equal(x.end.flags, 0);
    assert_string_equal(x.out, "1\n");
    rig_until_count(r, 1);
    rig_free(&x);
}

TEST(sweep_while_a_session_saves_its_state_leaves_the_command_that_follows)
{
    enum { ROUNDS = 5 };
    for (int i = 0; i < ROUNDS; i++) {
        RIG();
        uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
        (void)rig_check(r, session, "sleep 1000 & X=1", "", "");
        struct rig_exec x = {.command = "true", .mode = SILT_EXEC_BACKGROUND, .session = session};
        pid_t shell = rig_outer_pid(r, rig_shell_pid(r));
        assert_int_equal(kill(shell, SIGSTOP), 0);
        rig_send(r, &x);
        sweep_now_and_expect_later(r);
        assert_int_equal(kill(shell, SIGCONT), 0);
        follow_a_sweep(r, session, &x);
        assert_true(x.failed);
        rig_free(&x);
        rig_stop(r);
    }
}

TEST(sweep_ends_what_a_session_leaves_that_dies_before_its_turn)
{
    for (int mode = 1; mode <= 2; mode++) {
        RIG(.mode = mode);
        struct rig_frame f;
        uint64_t session = rig_open(r, "/tmp", "PATH=/usr/bin:/bin");
        (void)rig_check(r, session, "(trap '' HUP; setsid sleep 1000 >/dev/null 2>&1 &)", "", "");
        struct rig_exec x = {.command = "true", .mode = SILT_EXEC_BACKGROUND, .session = session};
        pid_t shell = rig_outer_pid(r, rig_shell_pid(r));
        assert_int_equal(kill(shell, SIGSTOP), 0);
        rig_send(r, &x);
        sweep_now_and_expect_later(r);
        assert_int_equal(kill(shell, SIGKILL), 0);
        rig_expect(r, SILT_AGENT_SWEPT, SWEEP, &f);
        assert_int_equal(rig_count_all(r), 0);
        rig_free(&x);
        rig_stop(r);
    }
}
