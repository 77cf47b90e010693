/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in a new shell with the session's state. */
#include "unit/agent/rig.h"

#include <signal.h>

static struct rig_exec background(uint64_t session, const char *command)
{
    return (struct rig_exec){.command = command, .session = session, .mode = SILT_EXEC_BACKGROUND};
}

static void check(struct rig *r, uint64_t s, const char *command, const char *out)
{
    struct rig_exec x = background(s, command);
    rig_run(r, &x);
    if (x.failed || strcmp(x.out, out) != 0 || x.err_len > 0)
        fail_msg("'%s' printed '%s', not '%s' (errors: '%s' %s)", command, x.out, out, x.err,
                 x.error.text);
    rig_free(&x);
}

TEST(background_command_inherits_the_session)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s,
                    "cd /usr; X='a b'; A=(1 2); export Y=2; f() { echo f$1; }; shopt -s extglob; "
                    "set -- p q; umask 077; ulimit -n 300; set -o pipefail",
                    "", "");
    check(
        r, s,
        "pwd; echo \"$X\" ${A[1]}; sh -c 'echo $Y'; f 3; echo $2; umask; ulimit -n; shopt extglob; "
        "shopt -o pipefail; /bin/pwd; echo $OLDPWD",
        "/usr\na b 2\n2\nf3\nq\n0077\n300\nextglob        \ton\npipefail       \ton\n/usr\n/tmp\n");
    rig_stop(r);
}

TEST(background_command_is_an_ordinary_shell)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    check(r, s, "echo $- $0 $? $#; jobs; declare -F; alias; compgen -e | sort | tr '\\n' ' '",
          "hBs bash 0 0\nHOME LANG LC_ALL PATH PWD SHLVL ");
    check(r, s, "ls /proc/self/fd | tr '\\n' ' '; cat; read x; echo $?", "0 1 2 3 1\n");
    check(r, s, "exec 10>/tmp/x; echo hi >&10; cat /tmp/x", "hi\n");
    check(r, s, "grep SigIgn /proc/$$/status", "SigIgn:\t0000000000000006\n");
    rig_stop(r);
}

TEST(background_command_does_not_change_the_session)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=1; sleep 100 &", "", "");
    check(r, s, "X=2; cd /; exit 0", "");
    (void)rig_check(r, s, "echo $X $PWD; jobs -r | wc -l; trap -p", "1 /tmp\n1\n", "");
    rig_stop(r);
}

TEST(background_commands_in_a_row_inherit_what_the_session_is_then)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    for (int i = 0; i < 3; i++)
        check(r, s, "echo ${X-none} $PWD; X=9; cd /", "none /tmp\n");
    (void)rig_check(r, s, "X=1; cd /usr; SECONDS=100", "", "");
    for (int i = 0; i < 3; i++)
        check(r, s, "echo $X $PWD; X=9; cd /", "1 /usr\n");
    check(r, s, "((SECONDS >= 100)) && sleep 1.1", "");
    check(r, s, "((SECONDS >= 101)); echo $?", "0\n");
    (void)rig_check(r, s, "ulimit -n 200; X=2", "", "");
    check(r, s, "echo $X $(ulimit -n)", "2 200\n");
    rig_stop(r);
}

/* The first starts a shell; after it there is one that waits, beside the session's. */
TEST(background_command_in_a_shell_that_waited_is_like_any_other)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "cd /usr; X='a b'; f() { echo f$1; }; umask 077; ulimit -n 300; set -- p",
                    "", "");
    for (int i = 0; i < 3; i++) {
        check(r, s,
              "pwd; /bin/pwd; echo \"$X\" $- $0 $1 $# $SHLVL; f 3; umask; ulimit -n; ulimit -Hn; "
              "echo "
              "$OLDPWD $LINENO",
              "/usr\n/usr\na b hBs bash p 1 1\nf3\n0077\n300\n300\n/tmp 4\n");
        rig_until_count(r, 2);
        check(r, s, "ls /proc/self/fd | tr '\\n' ' '; cat; read x; echo $?", "0 1 2 3 1\n");
        rig_until_count(r, 2);
        check(r, s, "grep SigIgn /proc/$$/status; ps -o sid= -p $$ | grep -qw $$; echo $?",
              "SigIgn:\t0000000000000006\n0\n");
        rig_until_count(r, 2);
    }
    struct rig_exec x = background(s, "fi");
    rig_run(r, &x);
    assert_int_equal(x.end.code, 2);
    assert_non_null(strstr(x.err, "line 4"));
    rig_free(&x);
    rig_stop(r);
}

TEST(a_shell_that_waits_may_be_stopped_or_killed)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    for (int i = 0; i < 3; i++) {
        check(r, s, "echo 1", "1\n");
        rig_until_count(r, 2);
        (void)rig_check(r, s, "for p in $(pgrep -x bash); do [ $p = $$ ] || kill -STOP $p; done",
                        "", "");
        check(r, s, "echo 2", "2\n");
        rig_until_count(r, 2);
        (void)rig_check(r, s, "for p in $(pgrep -x bash); do [ $p = $$ ] || kill -KILL $p; done",
                        "", "");
        rig_until_count(r, 1);
        check(r, s, "echo 3", "3\n");
        rig_until_count(r, 2);
    }
    rig_close(r, s);
    rig_until_count(r, 0);
    rig_stop(r);
}

/* A trap runs in a shell that waits for its next command, too. */
TEST(background_command_inherits_what_a_trap_did_meanwhile)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "mkfifo t; echo $$ >pid; trap 'X=2; echo now >t' USR1; X=1", "", "");
    check(r, s, "echo $X; trap -p USR1", "1\n");
    check(r, s, "kill -USR1 $(<pid); cat t; echo $X", "now\n1\n");
    check(r, s, "echo $X", "2\n");
    rig_stop(r);
}

TEST(background_command_reports_its_pid_and_real_status)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = background(s, "echo $$; exit 9");
    rig_run(r, &x);
    assert_int_equal(strtol(x.out, NULL, 10), x.pid);
    assert_int_equal(x.end.code, 9);
    assert_int_equal(x.end.cwd_len, 0);
    x.command = "kill -KILL $$";
    rig_run(r, &x);
    assert_int_equal(x.end.code, 137);
    assert_int_equal(x.end.signal, SIGKILL);
    x.command = "(exit 5)";
    rig_run(r, &x);
    assert_int_equal(x.end.code, 5);
    x.command = "if true; then";
    rig_run(r, &x);
    assert_int_equal(x.end.code, 2);
    assert_int_equal(strncmp(x.err, "bash: ", 6), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(background_command_has_its_own_cwd_and_env)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "export A=old; cd /usr", "", "");
    struct rig_exec x = background(s, "pwd; echo $OLDPWD; echo $A; sh -c 'echo $B'");
    x.cwd = "lib";
    x.env = "A=new\nB=it's";
    rig_run(r, &x);
    assert_string_equal(x.out, "/usr/lib\n/usr\nnew\nit's\n");
    (void)rig_check(r, s, "echo $A [$B]; pwd", "old []\n/usr\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(background_command_in_a_missing_directory_ends_with_one)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = background(s, "touch /tmp/ran");
    x.cwd = "/nowhere";
    rig_run(r, &x);
    assert_true(x.started && !x.failed);
    assert_int_equal(x.end.code, 1);
    assert_int_equal(x.end.flags, SILT_END_NO_CWD);
    (void)rig_check(r, s, "ls /tmp", "", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(background_command_runs_beside_the_session)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "mkfifo f", "", "");
    struct rig_exec x = background(s, "echo up; read line < f; echo got $line");
    rig_send(r, &x);
    rig_until_out(r, &x, "up");
    (void)rig_check(r, s, "echo word > f", "", "");
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "up\ngot word\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(background_commands_of_odd_states_run)
{
    static const char *const states[] = {
        "set -e",
        "set -u",
        "set -x",
        "set -v",
        "set -o posix",
        "set -C",
        "set -f",
        "IFS=x",
        "trap 'echo trapped' DEBUG EXIT ERR",
        "shopt -s expand_aliases; alias echo=false declare=false",
        "declare() { :; }; set() { :; }; shopt() { :; }",
        "cd /usr/lib/.; unset PWD HOME PATH LANG",
        "readonly X=1 IFS",
        "mkdir -p gone; cd gone; rmdir ../gone",
        "PS4='$(touch /tmp/never)'",
        "f() { echo ';'\"$(cat <<'E'\n$x\nE\n)\"; case x in (x) ;; esac; for ((;;)) { break; }; }",
    };
    RIG();
    for (size_t i = 0; i < SILT_COUNT(states); i++) {
        uint64_t s = rig_open(r, "/tmp", NULL);
        (void)rig_check(r, s, states[i], NULL, NULL);
        struct rig_exec x = background(s, "\\builtin echo fine");
        rig_run(r, &x);
        if (x.failed || strcmp(x.out, "fine\n") != 0 || x.end.code != 0)
            fail_msg("'%s': '%s' '%s' %d %s", states[i], x.out, x.err, x.end.code, x.error.text);
        rig_free(&x);
        rig_close(r, s);
    }
    rig_stop(r);
}

TEST(background_command_keeps_ignored_signals_and_no_traps)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "trap '' USR1; trap 'echo t' USR2 EXIT", "", "");
    check(r, s, "grep SigIgn /proc/$$/status; trap -p USR2 EXIT", "SigIgn:\t0000000000000206\n");
    rig_stop(r);
}

TEST(background_command_of_a_megabyte_runs)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    size_t size = 1 << 20;
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, "X='", 3);
    memcpy(text + size - 15, "'; echo ${#X} ;", 15);
    struct rig_exec x = background(s, "");
    rig_send_large(r, &x, (silt_slice){text, size});
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "1048558\n");
    free(text);
    rig_free(&x);
    rig_stop(r);
}

TEST(background_command_of_a_state_that_cannot_be_written_is_refused)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(
        r, s, "mount -o remount,size=1M /dev/silt; head -c 2M /dev/zero > /dev/silt/fill; true", "",
        NULL);
    struct rig_exec x = background(s, "echo no");
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_NO_SPACE);
    (void)rig_check(r, s, "rm /dev/silt/fill", "", "");
    check(r, s, "echo yes", "yes\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(background_commands_leave_nothing_in_the_directory)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    char names[256];
    for (int i = 0; i < 3; i++)
        check(r, s, "echo hi", "hi\n");
    size_t count = rig_directory_files(r, names, sizeof(names));
    assert_int_equal(count,
                     8); /* fork, save, and of the session gates, inputs, status and variables */
    rig_stop(r);
}

TEST(background_commands_die_with_their_session)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_frame f;
    struct rig_exec x = background(s, "sleep 100");
    rig_send(r, &x);
    rig_until_started(r, &x);
    struct rig_exec end = {.command = "exit 0", .session = s, .mode = SILT_EXEC_FOREGROUND};
    rig_run(r, &end);
    rig_expect(r, SILT_AGENT_DIED, s, &f);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 137);
    rig_until_count(r, 0);
    rig_free(&x);
    rig_free(&end);
    rig_stop(r);
}

TEST(background_commands_come_back_after_the_guest_emptied_our_directory)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "rm /dev/silt/fork /dev/silt/save", "", "");
    struct rig_exec x = background(s, "echo no");
    rig_run(r, &x);
    assert_true(x.failed);
    check(r, s, "echo yes", "yes\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(background_command_of_a_dead_session_is_refused)
{
    RIG();
    struct rig_exec x = background(12345, "echo no");
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_GONE);
    rig_free(&x);
    rig_stop(r);
}

TEST(background_output_comes_as_it_is_written)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = background(s, "echo one; sleep 100");
    rig_send(r, &x);
    rig_until_out(r, &x, "one\n");
    assert_false(x.ended);
    struct silt_agent_kill k = {.signal = SIGKILL};
    rig_say(r, SILT_AGENT_KILL, x.id, &k, sizeof(k));
    rig_until_ended(r, &x);
    rig_free(&x);
    rig_stop(r);
}
