/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, windows, and a siltd that comes and goes. */
#include "unit/agent/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static struct rig_exec plain(const char *command)
{
    return (struct rig_exec){
        .command = command, .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/usr/bin:/bin"};
}

TEST(large_output_arrives_complete_and_in_order)
{
    RIG();
    struct rig_exec x = plain("seq 1 1000000; seq 1 100000 >&2");
    rig_run(r, &x);
    assert_int_equal(x.out_len, 6888896);
    assert_int_equal(x.err_len, 588895);
    char *at = x.out;
    for (long i = 1; i <= 1000000; i++)
        if (strtol(at, &at, 10) != i)
            fail_msg("line %ld is wrong", i);
    rig_free(&x);
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec y = {.command = "seq 1 1000000", .session = s, .mode = SILT_EXEC_FOREGROUND};
    rig_run(r, &y);
    assert_int_equal(y.out_len, 6888896);
    rig_free(&y);
    rig_stop(r);
}

TEST(output_stops_at_the_window_and_goes_on_with_credit)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = plain("head -c 1000000 /dev/zero; echo; echo done >&2");
    x.keep_credit = true;
    rig_send(r, &x);
    while (x.out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    assert_int_equal(x.out_len, SILT_EXEC_WINDOW);
    assert_false(rig_hears(r, &f, 100));
    uint64_t credit = 1000;
    rig_say(r, SILT_AGENT_CREDIT, x.id, &credit, sizeof(credit));
    while (x.out_len < SILT_EXEC_WINDOW + 1000)
        rig_hear(r, &f);
    assert_false(rig_hears(r, &f, 100));
    x.keep_credit = false;
    credit = SILT_EXEC_WINDOW;
    rig_say(r, SILT_AGENT_CREDIT, x.id, &credit, sizeof(credit));
    rig_until_ended(r, &x);
    assert_int_equal(x.out_len, 1000001);
    assert_string_equal(x.err, "done\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(the_end_waits_until_all_output_is_taken)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = plain("head -c 300000 /dev/zero");
    x.keep_credit = true;
    rig_send(r, &x);
    while (x.out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    assert_false(rig_hears(r, &f, 400)); /* the command has long ended */
    uint64_t credit = SILT_EXEC_WINDOW;
    rig_say(r, SILT_AGENT_CREDIT, x.id, &credit, sizeof(credit));
    rig_until_ended(r, &x);
    assert_int_equal(x.out_len, 300000);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_pipe_that_was_made_larger_is_read_to_its_end)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = plain("python3 -c 'import fcntl,sys; fcntl.fcntl(1, 1031, 1 << 20); "
                              "sys.stdout.write(\"x\" * 1000000)'");
    x.keep_credit = true;
    rig_send(r, &x);
    while (x.out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    assert_false(rig_hears(r, &f, 300));
    x.keep_credit = false;
    uint64_t credit = SILT_EXEC_WINDOW;
    rig_say(r, SILT_AGENT_CREDIT, x.id, &credit, sizeof(credit));
    rig_until_ended(r, &x);
    assert_int_equal(x.out_len, 1000000);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_siltd_that_goes_away_leaves_the_sandbox_running)
{
    RIG();
    struct rig_exec x =
        plain("yes > /dev/full; head -c 10000000 /dev/zero; touch /tmp/done; sleep 100");
    char path[64];
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_cut(r);
    (void)snprintf(path, sizeof(path), "/proc/%d/root/tmp/done", (int)rig_pid(r));
    for (int i = 0; access(path, F_OK) < 0; i++) {
        assert_true(i < 1000 && rig_alive(r));
        (void)usleep(5000);
    }
    rig_free(&x);
    rig_stop(r);
}

TEST(a_detached_command_runs_free_and_still_ends)
{
    RIG();
    struct rig_frame f;
    struct rig_exec x = plain("head -c 100000000 /dev/zero; exit 3");
    x.keep_credit = true;
    rig_send(r, &x);
    while (x.out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    rig_say(r, SILT_AGENT_DETACH, x.id, NULL, 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.out_len, SILT_EXEC_WINDOW);
    assert_int_equal(x.end.code, 3);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_command_may_be_detached_before_it_runs)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = {.command = "head -c 10000000 /dev/zero; exit 4",
                         .session = s,
                         .mode = SILT_EXEC_BACKGROUND};
    rig_send(r, &x);
    rig_say(r, SILT_AGENT_DETACH, x.id, NULL, 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.out_len, 0);
    assert_int_equal(x.end.code, 4);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_loud_command_does_not_starve_others)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec loud = plain("yes");
    rig_send(r, &loud);
    rig_until_out(r, &loud, "y\n");
    for (int i = 0; i < 50; i++)
        (void)rig_check(r, s, "echo quiet", "quiet\n", "");
    struct silt_agent_kill k = {.signal = SIGKILL};
    rig_say(r, SILT_AGENT_KILL, loud.id, &k, sizeof(k));
    rig_until_ended(r, &loud);
    rig_free(&loud);
    rig_stop(r);
}

TEST(a_full_channel_loses_nothing)
{
    RIG(.handles = 8);
    struct rig_exec x[8];
    for (int i = 0; i < 8; i++) {
        x[i] = plain("seq 1 30000");
        rig_send(r, &x[i]);
    }
    (void)usleep(300000); /* siltd is asleep meanwhile: that is the case under test */
    for (int i = 0; i < 8; i++) {
        rig_until_ended(r, &x[i]);
        assert_int_equal(x[i].out_len, 168894);
        assert_int_equal(x[i].end.code, 0);
        rig_free(&x[i]);
    }
    rig_stop(r);
}

TEST(hello_is_answered_with_what_runs)
{
    RIG();
    struct rig_frame f;
    uint64_t epoch = 42;
    uint64_t s = rig_open(r, "/tmp", NULL);
    int32_t shell = rig_shell_pid(r);
    struct rig_exec fore = {.command = "sleep 100", .session = s, .mode = SILT_EXEC_FOREGROUND};
    struct rig_exec x = plain("echo up; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    rig_send(r, &fore);
    rig_until_started(r, &fore);
    rig_say(r, SILT_AGENT_HELLO, 0, &epoch, sizeof(epoch));
    rig_hear(r, &f);
    assert_int_equal(f.head.type, SILT_AGENT_WELCOME);
    assert_memory_equal(f.body, &epoch, sizeof(epoch));
    rig_hear(r, &f);
    assert_int_equal(f.head.type, SILT_AGENT_SESSION_INFO);
    assert_int_equal(f.head.id, s);
    struct silt_agent_session_info info;
    memcpy(&info, f.body, sizeof(info));
    assert_int_equal(info.pid, shell);
    assert_int_equal(info.busy_exec, fore.id);
    assert_int_equal(f.len, sizeof(info) + 4);
    assert_memory_equal(f.body + sizeof(info), "note", 4);
    for (int i = 0; i < 2; i++) {
        struct silt_agent_exec_info exec;
        rig_hear(r, &f);
        assert_int_equal(f.head.type, SILT_AGENT_EXEC_INFO);
        memcpy(&exec, f.body, sizeof(exec));
        assert_int_equal(f.head.id, i == 0 ? x.id : fore.id);
        assert_int_equal(exec.mode, i == 0 ? SILT_EXEC_PLAIN : SILT_EXEC_FOREGROUND);
        assert_int_equal(exec.session, i == 0 ? 0 : s);
        assert_int_equal(exec.pid, i == 0 ? x.pid : shell);
    }
    rig_hear(r, &f);
    assert_int_equal(f.head.type, SILT_AGENT_READY);
    rig_free(&x);
    rig_free(&fore);
    rig_stop(r);
}

TEST(a_ping_is_answered_while_a_command_runs)
{
    RIG();
    struct rig_frame f;
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = {.command = "sleep 0.2", .session = s, .mode = SILT_EXEC_FOREGROUND};
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_say(r, SILT_AGENT_PING, 0, NULL, 0);
    rig_expect(r, SILT_AGENT_PONG, 0, &f);
    assert_false(x.ended);
    rig_until_ended(r, &x);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_new_siltd_gets_the_whole_window_again)
{
    RIG();
    struct rig_frame f;
    uint64_t epoch = 1;
    struct rig_exec x = plain("yes");
    x.keep_credit = true;
    rig_send(r, &x);
    while (x.out_len < SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    assert_false(rig_hears(r, &f, 100));
    rig_say(r, SILT_AGENT_HELLO, 0, &epoch, sizeof(epoch));
    while (x.out_len < (size_t)2 * SILT_EXEC_WINDOW)
        rig_hear(r, &f);
    rig_free(&x);
    rig_stop(r);
}

TEST(frames_that_break_the_contract_are_survived)
{
    RIG();
    struct rig_frame f;
    char junk[SILT_FRAME_BODY_MAX];
    memset(junk, 0xff, sizeof(junk));
    for (uint32_t type = 0; type < 20; type++) {
        for (size_t len = 0; len < sizeof(junk); len = len * 3 + 1) {
            rig_say(r, type, 77, junk, len);
            while (rig_hears(r, &f, 0))
                ;
        }
    }
    struct silt_agent_start head = {.mode = 9};
    rig_say(r, SILT_AGENT_EXEC, 78, &head, sizeof(head));
    rig_expect(r, SILT_AGENT_FAILED, 78, &f);
    assert_int_equal(((struct silt_error *)(void *)f.body)->code, SILT_PROTOCOL);
    (void)send(3, "x", 1, 0);
    struct rig_exec x = plain("echo alive");
    rig_run(r, &x);
    assert_string_equal(x.out, "alive\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(descriptors_that_nobody_asked_for_are_closed)
{
    RIG();
    struct rig_exec x = plain("echo alive");
    int pair[2];
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    for (int i = 0; i < 50; i++)
        rig_say_fds(r, SILT_AGENT_DETACH, 1, pair, 2);
    (void)close(pair[1]);
    rig_run(r, &x);
    char byte;
    assert_int_equal(read(pair[0], &byte, 1), 0); /* so the last writer is gone */
    (void)close(pair[0]);
    rig_free(&x);
    rig_stop(r);
}

TEST(orphans_are_reaped)
{
    RIG();
    struct rig_exec x = plain("for i in $(seq 200); do (sh -c 'sleep 0.01 &' &); done; sleep 0.3; "
                              "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l");
    rig_run(r, &x);
    assert_string_equal(x.out, "0\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(signals_from_inside_do_not_reach_pid_1)
{
    RIG();
    struct rig_exec x =
        plain("for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; kill -9 1; echo alive");
    rig_run(r, &x);
    assert_string_equal(x.out, "alive\n");
    assert_true(rig_alive(r));
    rig_free(&x);
    rig_stop(r);
}

TEST(out_of_memory_is_told)
{
    RIG(.memory = 64 << 20);
    struct rig_exec x =
        plain("head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; exit ${PIPESTATUS[1]}");
    rig_run(r, &x);
    assert_int_equal(x.end.flags & SILT_END_OOM, SILT_END_OOM);
    assert_int_equal(x.end.code, 137);
    assert_true(x.end.peak_bytes > 50 << 20);
    x.command = "echo fine";
    rig_run(r, &x);
    assert_int_equal(x.end.flags, 0);
    rig_free(&x);
    assert_true(rig_alive(r));
    rig_stop(r);
}

TEST(refused_forks_are_told)
{
    RIG(.pids = 20);
    struct rig_exec x = plain("for i in $(seq 50); do sleep 0.2 & done 2>/dev/null; exit 0");
    rig_run(r, &x);
    assert_int_equal(x.end.flags & SILT_END_PIDS, SILT_END_PIDS);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_guest_without_memory_does_not_take_pid_1_along)
{
    RIG(.memory = 16 << 20);
    struct rig_exec eater = plain("cd /dev/shm; head -c 100000000 /dev/zero > fill; sleep 100");
    rig_send(r, &eater);
    rig_until_started(r, &eater);
    for (int i = 0; i < 20; i++) {
        struct rig_exec x = plain("true");
        rig_run(r, &x); /* it may be killed on its way to exec: that is its own death */
        rig_free(&x);
    }
    assert_true(rig_alive(r));
    rig_free(&eater);
    rig_stop(r);
}
