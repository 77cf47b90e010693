/* SPDX-License-Identifier: Apache-2.0 */
/* Commands without a session. */
#include "unit/agent/rig.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static struct rig_exec plain(const char *command)
{
    return (struct rig_exec){
        .command = command, .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/usr/bin:/bin"};
}

TEST(plain_command_gives_output_error_and_code)
{
    RIG();
    struct rig_exec x = plain("echo out; echo err >&2; exit 7");
    rig_run(r, &x);
    assert_string_equal(x.out, "out\n");
    assert_string_equal(x.err, "err\n");
    assert_int_equal(x.end.code, 7);
    assert_int_equal(x.end.signal, 0);
    assert_int_equal(x.end.flags, 0);
    assert_true(x.started && x.pid > 1);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_that_dies_of_a_signal_tells_it)
{
    RIG();
    struct rig_exec x = plain("kill -SEGV $$");
    rig_run(r, &x);
    assert_int_equal(x.end.code, 128 + SIGSEGV);
    assert_int_equal(x.end.signal, SIGSEGV);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_has_an_empty_input_a_session_of_its_own_and_only_three_descriptors)
{
    RIG();
    struct rig_exec x = plain("cat; read a; echo $?; ls /proc/self/fd | tr '\\n' ' '; "
                              "test \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ && echo own; "
                              "grep -E 'SigBlk|SigIgn' /proc/$$/status");
    rig_run(r, &x);
    assert_string_equal(x.out,
                        "1\n0 1 2 3 own\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_sees_exactly_the_given_environment)
{
    RIG();
    struct rig_exec x = plain("env | sort");
    x.env = "PATH=/usr/bin:/bin\nB=x y\nA=1\n9odd=ok";
    rig_run(r, &x);
    assert_string_equal(
        x.out, "9odd=ok\nA=1\nB=x y\nPATH=/usr/bin:/bin\nPWD=/tmp\nSHLVL=1\n_=/usr/bin/env\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_in_a_missing_directory_fails_to_start)
{
    RIG();
    struct rig_exec x = plain("echo no");
    x.cwd = "/nowhere";
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_NOT_FOUND);
    assert_string_equal(x.error.text, "Failed to change directory to '/nowhere'");
    rig_free(&x);
    rig_stop(r);
}

static void check_no_way_out(struct rig *r)
{
    for (int fd = 3; fd < 40; fd++) {
        char cwd[32];
        struct rig_exec x = plain("pwd -P; ls");
        (void)snprintf(cwd, sizeof(cwd), "/proc/self/fd/%d", fd);
        x.cwd = cwd;
        rig_run(r, &x);
        if (!x.failed)
            fail_msg("%s leads to %s", cwd, x.out);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(a_directory_that_is_a_descriptor_of_ours_cannot_be_entered)
{
    RIG();
    check_no_way_out(r);
}

TEST(a_directory_that_is_a_version_2_group_cannot_be_entered)
{
    RIG(.mode = 2);
    check_no_way_out(r);
}

TEST(plain_command_of_a_megabyte_runs)
{
    RIG();
    size_t size = 1 << 20;
    char *text = malloc(size + 64);
    memset(text, ' ', size);
    memcpy(text, "echo 'a''b'", 11);
    silt_slice tail = SILT_LIT("; echo $0 $-; ls /proc/self/fd | tr '\\n' ' '");
    memcpy(text + size, tail.data, tail.len);
    struct rig_exec x = plain("");
    rig_send_large(r, &x, (silt_slice){text, size + tail.len});
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "ab\n/bin/bash hBc\n0 1 2 3 ");
    assert_int_equal(x.end.code, 0);
    rig_free(&x);
    free(text);
    rig_stop(r);
}

TEST(plain_command_in_a_memory_file_of_ordinary_size_runs)
{
    RIG();
    struct rig_exec x = plain("");
    rig_send_large(r, &x, SILT_LIT("echo $PWD $0"));
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "/tmp /bin/bash\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_ends_although_a_grandchild_holds_its_output)
{
    RIG();
    struct rig_exec x = plain("sleep 1000 & echo done");
    rig_run(r, &x);
    assert_string_equal(x.out, "done\n");
    assert_int_equal(rig_count_all(r), 1);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_keeps_what_a_filter_writes_just_after_it)
{
    RIG();
    struct rig_exec x = plain("echo late > >(cat)");
    int kept = 0;
    for (int i = 0; i < 20; i++) {
        rig_run(r, &x);
        kept += strcmp(x.out, "late\n") == 0;
    }
    assert_in_range(kept, 15, 20); /* its patience ends where the machine is hopelessly busy */
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_command_that_talks_on_in_the_background_ends_within_its_patience)
{
    RIG();
    struct rig_exec x = plain("(while :; do echo x; done) & echo done");
    rig_run(r, &x);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_timeout_ends_a_command_that_obeys)
{
    RIG();
    struct rig_exec x = plain("echo begun; sleep 100");
    x.timeout_ms = 1000; /* also a busy machine has begun by then */
    rig_run(r, &x);
    assert_string_equal(x.out, "begun\n");
    assert_int_equal(x.end.flags, SILT_END_TIMEOUT);
    assert_int_equal(x.end.code, 143);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_timeout_kills_a_command_that_does_not_after_five_seconds)
{
    RIG();
    struct rig_exec x = plain("trap '' TERM; (trap '' TERM; setsid sleep 100 & sleep 100) & "
                              "while :; do sleep 1; done");
    x.timeout_ms = 3000; /* by then its traps are set */
    int64_t from = rig_now_us();
    rig_run(r, &x);
    assert_int_equal(x.end.flags, SILT_END_TIMEOUT);
    assert_int_equal(x.end.code, 137);
    assert_true(rig_now_us() - from >= 5000000);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_timeout_takes_stragglers_of_an_obedient_command_along)
{
    RIG();
    struct rig_exec x = plain("(trap '' TERM; sleep 100; sleep 100) & sleep 100");
    x.timeout_ms = 1000;
    int64_t from = rig_now_us();
    rig_run(r, &x);
    assert_in_range(rig_now_us() - from, 0, 5500000); /* before its five seconds are over */
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

static void kill_exec(struct rig *r, struct rig_exec *x, uint32_t signal)
{
    struct silt_agent_kill k = {.signal = signal};
    rig_say(r, SILT_AGENT_KILL, x->id, &k, sizeof(k));
}

TEST(kill_reaches_everything_that_hid)
{
    RIG();
    struct rig_exec x =
        plain("for i in 1 2 3 4 5; do (setsid sh -c 'trap \"\" TERM INT; sleep 100 & "
              "sleep 100' &) ; done; echo up; wait; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    while (rig_count_all(r) < 11) /* two each at least, and the command */
        (void)usleep(1000);
    kill_exec(r, &x, SIGKILL);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(kill_ends_a_fork_bomb)
{
    RIG(.pids = 300);
    struct rig_exec x = plain("f() { f & f & wait; }; echo go; f 2>/dev/null");
    rig_send(r, &x);
    rig_until_out(r, &x, "go");
    while (rig_count_all(r) < 100)
        (void)usleep(1000);
    kill_exec(r, &x, SIGKILL);
    rig_until_ended(r, &x);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(kill_with_a_gentle_signal_goes_to_all_and_leaves_the_rest_to_them)
{
    RIG();
    struct rig_exec x =
        plain("trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.05; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGUSR1);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 9);
    assert_non_null(strstr(x.out, "got\n"));
    rig_free(&x);
    rig_stop(r);
}

TEST(kill_works_when_the_first_thread_of_a_process_has_ended)
{
    RIG();
    struct rig_exec x = plain("exec python3 -c 'import threading,ctypes,time\n"
                              "threading.Thread(target=lambda: (time.sleep(.05), print(\"up\", "
                              "flush=True), time.sleep(100))).start()\n"
                              "ctypes.CDLL(None).pthread_exit(None)'");
    if (access("/usr/bin/python3", X_OK) < 0) {
        rig_stop(r);
        skip();
    }
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    kill_exec(r, &x, SIGKILL);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    rig_free(&x);
    rig_stop(r);
}

TEST(a_handle_is_used_again_once_it_is_empty)
{
    RIG(.handles = 1);
    struct rig_exec x = plain("echo one");
    for (int i = 0; i < 5; i++) {
        rig_run(r, &x);
        assert_string_equal(x.out, "one\n");
    }
    rig_free(&x);
    rig_stop(r);
}

TEST(more_commands_than_handles_ask_for_more)
{
    RIG(.handles = 2);
    struct rig_exec x[20];
    for (int i = 0; i < 20; i++) {
        x[i] = plain("sleep 0.2; echo hi");
        rig_send(r, &x[i]);
    }
    for (int i = 0; i < 20; i++) {
        rig_until_ended(r, &x[i]);
        assert_false(x[i].failed);
        assert_string_equal(x[i].out, "hi\n");
        rig_free(&x[i]);
    }
    rig_stop(r);
}

TEST(a_command_without_a_handle_fails_after_five_seconds)
{
    RIG(.handles = 1);
    struct rig_exec a = plain("sleep 100");
    struct rig_exec b = plain("echo no");
    struct rig_frame f;
    rig_send(r, &a);
    rig_until_started(r, &a);
    rig_send(r, &b);
    int64_t from = rig_now_us();
    do
        assert_true(rig_hears(r, &f, RIG_PATIENCE_MS));
    while (f.head.type != SILT_AGENT_FAILED);
    assert_int_equal(f.head.id, b.id);
    assert_int_equal(((struct silt_error *)(void *)f.body)->code, SILT_LIMIT);
    assert_true(rig_now_us() - from >= 4900000);
    rig_free(&a);
    rig_free(&b);
    rig_stop(r);
}

TEST(a_program_that_cannot_be_started_is_told)
{
    RIG();
    struct rig_exec x = plain("echo no");
    x.env_raw = "no end";
    x.env_raw_len = 6;
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_PROTOCOL);
    rig_free(&x);
    rig_stop(r);
}

TEST(plain_commands_run_in_version_2_groups)
{
    RIG(.mode = 2);
    struct rig_exec x =
        plain("(setsid sleep 100 &); grep unified /proc/self/cgroup; echo up; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    assert_int_equal(rig_count_all(r), 2);
    kill_exec(r, &x, SIGKILL);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}
