/* SPDX-License-Identifier: Apache-2.0 */
/* A foreground command whose time is over: its shell is replaced by one with the same state. */
#include "unit/agent/rig.h"

#include <signal.h>

static struct rig_exec within(uint64_t session, const char *command, uint32_t timeout_ms)
{
    return (struct rig_exec){.command = command,
                             .session = session,
                             .mode = SILT_EXEC_FOREGROUND,
                             .timeout_ms = timeout_ms};
}

static void check_expired(struct rig *r, uint64_t s, const char *command)
{
    struct rig_exec x = within(s, command, 100);
    int64_t from = rig_now_us();
    rig_run(r, &x);
    int64_t took = rig_now_us() - from;
    if (x.failed || x.end.flags != (SILT_END_TIMEOUT | SILT_END_RESTARTED) || took < 90000)
        fail_msg("'%s': failed %d flags %u after %lld us", command, x.failed, x.end.flags,
                 (long long)took);
    rig_free(&x);
}

TEST(timeout_that_is_not_reached_changes_nothing)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = within(s, "echo $? $$; X=1; cd /usr; trap 'echo t' USR1; false", 5000);
    char want[32];
    char names[256];
    rig_run(r, &x);
    (void)snprintf(want, sizeof(want), "0 %d\n", rig_shell_pid(r));
    assert_string_equal(x.out, want);
    assert_string_equal(x.err, "");
    assert_int_equal(x.end.code, 1);
    assert_int_equal(x.end.flags, 0);
    (void)rig_check(r, s, "echo $X $PWD; trap -p", "1 /usr\ntrap -- 'echo t' SIGUSR1\n", "");
    (void)rig_directory_files(r, names, sizeof(names));
    assert_null(strstr(names, "0d"));
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_ends_every_kind_of_command)
{
    static const char *const commands[] = {
        "while :; do :; done",
        "f() { g; }; g() { h; }; h() { while :; do sleep 1; done; }; f; echo after",
        "trap '' $(seq 1 31) 2>/dev/null; while :; do sleep 1; done",
        "yes | cat | grep -v y; echo after",
        "sleep 100 & wait",
        "(setsid sh -c 'sleep 100 & exec sleep 100' &) ; sleep 100",
        "sh -c 'trap \"\" TERM INT HUP; sleep 100; sleep 100'",
        "read x < <(sleep 100)",
        "cat < <(yes) > /dev/null",
        "exec sleep 100",
        "kill -STOP $$",
        "echo $(sleep 100)",
    };
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=kept; cd /usr", "", "");
    for (size_t i = 0; i < SILT_COUNT(commands); i++) {
        check_expired(r, s, commands[i]);
        (void)rig_check(r, s, "echo $X; pwd", "kept\n/usr\n", "");
        assert_int_equal(rig_count_all(r), 1);
    }
    rig_stop(r);
}

TEST(timeout_keeps_the_output_so_far)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = within(s, "echo some; echo more >&2; sleep 100", 100);
    rig_run(r, &x);
    assert_string_equal(x.out, "some\n");
    assert_string_equal(x.err, "more\n");
    assert_int_equal(x.end.code, 137);
    assert_string_equal(x.cwd_now, "/tmp");
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_brings_the_whole_state_back)
{
    static const char *const looks =
        "declare -p S A M N E U RO; f x; type -t g; set -o | grep -E 'pipefail|nounset|noclobber'; "
        "shopt extglob nullglob; alias ll; trap -p; umask; pwd; echo $OLDPWD; echo $# \"$2\"; "
        "sh -c 'echo $E'; bash -c f; ulimit -n; echo $- $0; echo \"$U\"; echo ${LC_ALL-unset}";
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(
        r, s,
        "S='a\"b'\\''$c`d`'; A=(1 'two words' $'three\\n'); declare -A M=([k v]=w [x]='y z'); "
        "declare -i N=5; export E='exported $x'; U=$'gr\\u00fcn \\t\\001'; readonly RO=1; "
        "f() { echo f \"$@\" <<X\nin a here-document\nX\n}; export -f f; shopt -s extglob "
        "nullglob; "
        "alias ll='ls -l'; trap 'echo \"it'\\''s\"' USR1; trap '' USR2; umask 027; cd /etc; cd "
        "/usr",
        "", "");
    (void)rig_check(r, s,
                    "g() { case $1 in @(a|b)) echo ext;; esac; }; set -- one 'two  words' three; "
                    "ulimit -n 500; set -o pipefail -o nounset -o noclobber; unset LC_ALL",
                    "", "");
    struct rig_exec before = within(s, looks, 0);
    struct rig_exec after = within(s, looks, 0);
    rig_run(r, &before);
    assert_string_equal(before.err, "");
    check_expired(r, s, "sleep 100");
    rig_run(r, &after);
    assert_string_equal(after.out, before.out);
    assert_string_equal(after.err, "");
    assert_int_equal(rig_check(r, s, "RO=2", "", NULL), 1);
    rig_free(&before);
    rig_free(&after);
    rig_stop(r);
}

TEST(timeout_does_not_keep_what_the_command_itself_changed)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=before", "", "");
    struct rig_exec x = within(s, "X=after; cd /usr; Z=$Z$Z; sleep 100", 100);
    x.env = "Z=tmp";
    x.cwd = "/var";
    rig_run(r, &x);
    assert_int_equal(x.end.flags, SILT_END_TIMEOUT | SILT_END_RESTARTED);
    (void)rig_check(r, s, "echo $X [$Z]; pwd", "before []\n/tmp\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_restores_options_that_are_dangerous_to_load)
{
    static const char *const options[] = {"set -e",
                                          "set -u",
                                          "set -x",
                                          "set -v",
                                          "set -o posix",
                                          "set -f",
                                          "set -eu -o pipefail",
                                          "shopt -s extdebug"};
    RIG();
    for (size_t i = 0; i < SILT_COUNT(options); i++) {
        uint64_t s = rig_open(r, "/tmp", NULL);
        (void)rig_check(r, s, "X=1; f() { echo f; }", "", "");
        (void)rig_check(r, s, options[i], NULL, NULL);
        struct rig_exec before = within(s, "echo $-; echo $SHELLOPTS", 0);
        struct rig_exec after = within(s, "echo $-; echo $SHELLOPTS", 0);
        rig_run(r, &before);
        check_expired(r, s, "sleep 100");
        rig_run(r, &after);
        assert_string_equal(after.out, before.out);
        (void)rig_check(r, s, "echo $X; f", "1\nf\n", NULL);
        rig_free(&before);
        rig_free(&after);
        rig_close(r, s);
    }
    rig_stop(r);
}

TEST(timeout_spares_the_jobs_of_earlier_commands)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = within(s, "sleep 99 & sleep 98 & echo $!", 0);
    rig_run(r, &x);
    char command[64];
    (void)snprintf(command, sizeof(command), "kill -0 %d && pgrep -c sleep",
                   (int)strtol(x.out, NULL, 10));
    check_expired(r, s, "sleep 97 & (setsid sleep 96 &) ; sleep 95");
    (void)rig_check(r, s, command, "2\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_spares_an_earlier_job_that_makes_threads_meanwhile)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(
        r, s,
        "python3 -c 'import threading,time\n"
        "time.sleep(.5)\n"
        "for i in range(5): threading.Thread(target=lambda: time.sleep(100)).start()\n' &",
        "", NULL);
    struct rig_exec x = within(s, "sleep 100", 1000);
    rig_run(r, &x);
    assert_int_equal(x.end.flags, SILT_END_TIMEOUT | SILT_END_RESTARTED);
    (void)rig_check(r, s, "pgrep -c python3", "1\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_spares_the_children_that_an_earlier_job_makes_meanwhile)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "(sleep 0.3; (sleep 100); touch /tmp/disturbed) &", "", "");
    struct rig_exec x = within(s, "sleep 100", 1000);
    rig_run(r, &x);
    assert_int_equal(x.end.flags, SILT_END_TIMEOUT | SILT_END_RESTARTED);
    (void)rig_check(r, s, "ls /tmp; pgrep -c sleep", "1\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_ends_a_fork_bomb)
{
    RIG(.pids = 300);
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "sleep 100 & X=1", "", "");
    struct rig_exec x = within(s, "f() { f & f & wait; }; f 2>/dev/null", 500);
    rig_run(r, &x);
    assert_true((x.end.flags & SILT_END_TIMEOUT) != 0);
    (void)rig_check(r, s, "echo $X", "1\n", "");
    assert_int_equal(rig_count_all(r), 2);
    rig_free(&x);
    rig_stop(r);
}

TEST(timeout_works_again_and_again)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=1", "", "");
    for (int i = 0; i < 5; i++)
        check_expired(r, s, "sleep 100");
    (void)rig_check(r, s, "echo $X; X=2", "1\n", "");
    check_expired(r, s, "X=3; while :; do :; done");
    (void)rig_check(r, s, "echo $X", "2\n", "");
    rig_stop(r);
}

TEST(timeout_works_in_version_2_groups)
{
    RIG(.mode = 2);
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "sleep 100 & X=1", "", "");
    check_expired(r, s, "(setsid sleep 100 &); while :; do :; done");
    (void)rig_check(r, s, "echo $X", "1\n", "");
    assert_int_equal(rig_count_all(r), 2);
    rig_stop(r);
}
