/* SPDX-License-Identifier: Apache-2.0 */
/* Foreground commands in a session's shell. */
#include "unit/agent/rig.h"

#include <signal.h>
#include <unistd.h>

static struct rig_exec foreground(uint64_t session, const char *command)
{
    return (struct rig_exec){.command = command, .session = session, .mode = SILT_EXEC_FOREGROUND};
}

TEST(session_keeps_directory_variables_and_functions)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    assert_int_equal(
        rig_check(r, s, "cd /usr; X=1; export Y=2; f() { echo f$1; }; umask 077", "", ""), 0);
    (void)rig_check(r, s, "pwd; echo $X; sh -c 'echo $Y'; f 3; umask", "/usr\n1\n2\nf3\n0077\n",
                    "");
    rig_stop(r);
}

TEST(session_is_an_ordinary_shell_that_shows_nothing_of_ours)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "echo $- $0 $?", "hBs bash 0\n", "");
    (void)rig_check(r, s, "false", "", "");
    (void)rig_check(r, s, "echo $?; jobs; trap -p; declare -F; alias; echo [$!] $#", "0\n[] 0\n",
                    "");
    (void)rig_check(r, s, "compgen -v | grep -i silt", "", "");
    (void)rig_check(r, s, "compgen -e | sort | tr '\\n' ' '", "HOME LANG LC_ALL PATH PWD SHLVL ",
                    "");
    (void)rig_check(r, s, "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", "");
    (void)rig_check(r, s, "test $$ = $BASHPID && echo same", "same\n", "");
    (void)rig_check(r, s, "cat; read x; echo $?", "1\n", "");
    rig_stop(r);
}

TEST(session_gives_code_and_directory_with_the_end)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "cd /var; (exit 42)");
    rig_run(r, &x);
    assert_int_equal(x.end.code, 42);
    assert_string_equal(x.cwd_now, "/var");
    assert_int_equal(x.pid, rig_shell_pid(r));
    rig_free(&x);
    rig_stop(r);
}

TEST(session_without_its_directory_starts_at_home)
{
    RIG();
    uint64_t s = rig_open(r, "/nowhere", "PATH=/usr/bin:/bin\nHOME=/usr");
    (void)rig_check(r, s, "pwd", "/usr\n", "");
    s = rig_open(r, NULL, "PATH=/usr/bin:/bin\nHOME=/nowhere");
    (void)rig_check(r, s, "pwd", "/root\n", "");
    rig_stop(r);
}

TEST(session_output_is_verbatim)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "printf 'a\\n\\n'; printf b; printf 'c\\r\\n' >&2", "a\n\nb", "c\r\n");
    struct rig_exec x = foreground(s, "printf 'a\\0b\\377'");
    rig_run(r, &x);
    assert_int_equal(x.out_len, 4);
    assert_memory_equal(x.out, "a\0b\377", 4);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_passes_text_through_unchanged)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "echo 'it'\\''s' \"$(echo \"q'q\")\" \\\\", "it's q'q \\\n", "");
    (void)rig_check(r, s, "cat <<'E'\na $x `b` 'c'\nE\necho d", "a $x `b` 'c'\nd\n", "");
    (void)rig_check(r, s, "echo a # comment", "a\n", "");
    (void)rig_check(r, s, "if true\nthen\n echo yes\nfi\n", "yes\n", "");
    (void)rig_check(r, s, "echo \"line1\nline2\"", "line1\nline2\n", "");
    (void)rig_check(r, s, "\n\n  echo x  \n\n", "x\n", "");
    (void)rig_check(r, s, "echo grün ✓", "grün ✓\n", "");
    rig_stop(r);
}

TEST(session_survives_what_cannot_be_parsed)
{
    static const char *const broken[] = {
        "if true; then",
        "echo 'abc",
        "echo \"abc",
        "echo ok; )",
        "}",
        "for x in",
        "echo $(",
        "a &&",
        "case x in",
        "{",
        "((",
        "[[ a",
        "<",
        "echo `x",
        "fi",
        "function",
    };
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=kept", "", "");
    for (size_t i = 0; i < SILT_COUNT(broken); i++) {
        struct rig_exec x = foreground(s, broken[i]);
        rig_run(r, &x);
        if (x.end.code != 2 || x.end.flags != 0 || strncmp(x.err, "bash: ", 6) != 0)
            fail_msg("'%s': code %d flags %u '%s'", broken[i], x.end.code, x.end.flags, x.err);
        rig_free(&x);
    }
    assert_int_equal(rig_check(r, s, "return 5", "", NULL), 2);
    assert_int_equal(rig_check(r, s, "echo a \\", "a \\\n", ""), 0);
    assert_int_equal(rig_check(r, s, "cat <<X\nhi", "hi\n", NULL), 0);
    (void)rig_check(r, s, "echo $X", "kept\n", "");
    rig_stop(r);
}

TEST(session_survives_what_cannot_be_parsed_in_posix_mode)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "set -o posix", "", "");
    assert_int_equal(rig_check(r, s, "if true; then", "", NULL), 2);
    struct rig_exec x = foreground(s, "echo [$Z]; pwd");
    x.env = "Z=1";
    x.cwd = "/var";
    rig_run(r, &x);
    assert_string_equal(x.out, "[1]\n/var\n");
    (void)rig_check(r, s, "echo [$Z]; pwd", "[]\n/tmp\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_is_not_confused_by_options_and_names_of_the_user)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "set -u -C -f -b; IFS=0123456789; CDPATH=/usr; unset PWD OLDPWD", "", "");
    assert_int_equal(rig_check(r, s, "(exit 123)", "", ""), 123);
    (void)rig_check(r, s,
                    "eval() { echo mine; }; printf() { echo mine; }; cd() { echo mine; }; "
                    "builtin() { echo mine; }; exec() { echo mine; }; :() { echo mine; }",
                    "", "");
    (void)rig_check(r, s, "echo a", "a\n", "");
    (void)rig_check(r, s, "shopt -s expand_aliases; alias command=false eval=false printf=false",
                    "", "");
    (void)rig_check(r, s, "echo b", "b\n", "");
    (void)rig_check(r, s, "set -v", "", "");
    (void)rig_check(r, s, "echo c", "c\n", "echo c\n");
    (void)rig_check(r, s, "set +v; set -x", "", "set +v; set -x\n");
    (void)rig_check(r, s, "echo d", "d\n", "++ echo d\n");
    rig_stop(r);
}

TEST(session_env_is_for_one_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "export FOO=1; PLAIN=2", "", "");
    struct rig_exec x =
        foreground(s, "echo $FOO $BAR $PLAIN; sh -c 'echo $FOO $BAR $PLAIN'; cd /usr");
    x.env = "FOO=x\nBAR=it's \"q\" $HOME\nPLAIN=p";
    rig_run(r, &x);
    assert_string_equal(x.out, "x it's \"q\" $HOME p\nx it's \"q\" $HOME p\n");
    assert_string_equal(x.cwd_now, "/usr");
    (void)rig_check(r, s, "echo [$FOO][$BAR][$PLAIN]; sh -c 'echo $FOO $PLAIN'; pwd",
                    "[1][][2]\n1\n/usr\n", "");
    x.command = "echo $FOO; FOO=changed; echo $FOO; NEW=1";
    rig_run(r, &x);
    assert_string_equal(x.out, "x\nchanged\n");
    (void)rig_check(r, s, "echo $FOO $NEW", "1 1\n", "");
    x.command = "a=b:c; set -- $a; echo $#; type -p ls";
    x.env = "IFS=:\nPATH=/bin";
    rig_run(r, &x);
    assert_string_equal(x.out, "2\n/bin/ls\n");
    (void)rig_check(r, s, "echo \"$PATH\"; printf %q \"$IFS\"", "/usr/bin:/bin\n$' \\t\\n'", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_env_that_is_readonly_is_complained_about)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "readonly RO=1", "", "");
    struct rig_exec x = foreground(s, "echo $RO");
    x.env = "RO=2";
    rig_run(r, &x);
    assert_non_null(strstr(x.err, "RO: readonly variable"));
    (void)rig_check(r, s, "echo $RO", "1\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_env_with_a_bad_name_is_refused)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "echo no");
    x.env = "A;touch /tmp/owned;B=2";
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_INVALID);
    (void)rig_check(r, s, "ls /tmp", "", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_cwd_is_for_one_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "cd /etc; cd /usr", "", "");
    struct rig_exec x = foreground(s, "pwd; echo $OLDPWD; cd /var; pwd; X=1");
    x.cwd = "/";
    rig_run(r, &x);
    assert_string_equal(x.out, "/\n/usr\n/var\n");
    assert_string_equal(x.cwd_now, "/usr");
    (void)rig_check(r, s, "pwd; /bin/pwd; echo $OLDPWD $X", "/usr\n/usr\n/etc 1\n", "");
    x.command = "pwd";
    x.cwd = "lib";
    rig_run(r, &x);
    assert_string_equal(x.out, "/usr/lib\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_cwd_may_have_any_name)
{
    static const char *const names[] = {"-", "~", "it's", "a b", "$HOME", "-P", "new\nline", "*"};
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    for (size_t i = 0; i < SILT_COUNT(names); i++) {
        struct rig_exec x = foreground(s, "mkdir -p \"./$D\"");
        char env[64];
        (void)snprintf(env, sizeof(env), "D=%s", names[i]);
        x.env_raw = env;
        x.env_raw_len = strlen(env) + 1;
        rig_run(r, &x);
        assert_string_equal(x.err, "");
        x.env_raw = NULL;
        x.command = "basename \"$PWD\"";
        x.cwd = names[i];
        rig_run(r, &x);
        assert_int_equal(strncmp(x.out, names[i], strlen(names[i])), 0);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(session_cwd_that_is_missing_runs_nothing)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "touch /tmp/ran; echo no");
    x.cwd = "/nowhere";
    rig_run(r, &x);
    assert_int_equal(x.end.code, 1);
    assert_int_equal(x.end.flags, SILT_END_NO_CWD);
    assert_string_equal(x.out, "");
    assert_string_equal(x.err, "");
    (void)rig_check(r, s, "ls; pwd; echo $?", "/tmp\n0\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_runs_large_commands)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    char text[40000];
    struct rig_exec x = foreground(s, text);
    for (size_t size = 1400; size < sizeof(text) - 100; size = size * 5 / 4) {
        (void)snprintf(text, sizeof(text), "X='%0*d'; echo ${#X} it\\'s $V $PWD", (int)size, 7);
        x.env = size % 2 ? "V=env" : NULL;
        x.cwd = size % 3 ? "/usr" : NULL;
        rig_run(r, &x);
        char want[64];
        (void)snprintf(want, sizeof(want), "%zu it's%s %s\n", size, size % 2 ? " env" : "",
                       size % 3 ? "/usr" : "/tmp");
        assert_string_equal(x.out, want);
    }
    rig_free(&x);
    rig_stop(r);
}

TEST(session_runs_a_command_of_many_megabytes)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    size_t size = 8 << 20;
    char *text = malloc(size);
    memset(text, 'x', size);
    memcpy(text, "X='", 3);
    memcpy(text + size - 15, "'; echo ${#X} ;", 15);
    struct rig_exec x = foreground(s, "");
    rig_send_large(r, &x, (silt_slice){text, size});
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "8388590\n");
    free(text);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_runs_commands_with_very_many_quotes)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    size_t size = 1 << 20;
    char *text = malloc(size + 64);
    int head = snprintf(text, 64, "echo \"$A\" $PWD; echo \"");
    memset(text + head, '\'', size);
    silt_slice tail = SILT_LIT("\" | wc -c");
    memcpy(text + (size_t)head + size, tail.data, tail.len);
    silt_slice command = {text, (size_t)head + size + tail.len};
    for (uint32_t mode = SILT_EXEC_FOREGROUND; mode <= SILT_EXEC_BACKGROUND; mode++) {
        struct rig_exec x = {
            .command = "", .session = s, .mode = mode, .cwd = "/usr", .env = "A='it''s'"};
        rig_send_large(r, &x, command);
        rig_until_ended(r, &x);
        assert_string_equal(x.out, "'it''s' /usr\n1048577\n");
        rig_free(&x);
    }
    free(text);
    rig_stop(r);
}

TEST(session_in_a_directory_of_any_length_goes_on)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(
        r, s, "X=kept; n=$(printf 'ü%.0s' {1..100}); for i in {1..40}; do mkdir -p $n; cd $n; done",
        "", "");
    (void)rig_check(r, s, "echo $X ${#PWD}", "kept 4044\n", "");
    rig_stop(r);
}

TEST(session_ends_with_exit)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_frame f;
    struct rig_exec x = foreground(s, "echo last; exit 3");
    rig_run(r, &x);
    assert_int_equal(x.end.code, 3);
    assert_int_equal(x.end.flags, SILT_END_SHELL);
    assert_string_equal(x.out, "last\n");
    rig_expect(r, SILT_AGENT_DIED, s, &f);
    assert_int_equal(((struct silt_agent_end *)(void *)f.body)->code, 3);
    rig_run(r, &x);
    assert_true(x.failed);
    assert_int_equal(x.error.code, SILT_GONE);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_ends_with_everything_that_ends_a_shell)
{
    static const struct {
        const char *command;
        int code, signal;
    } cases[] = {
        {"kill -9 $$", 137, SIGKILL},  {"kill $$", 143, SIGTERM},
        {"set -e; false", 1, 0},       {"set -u; echo $nope", 1, 0},
        {"exec sh -c 'exit 5'", 5, 0}, {"trap 'echo bye' EXIT; exit 4", 4, 0},
    };
    RIG();
    for (size_t i = 0; i < SILT_COUNT(cases); i++) {
        struct rig_frame f;
        uint64_t s = rig_open(r, "/tmp", NULL);
        struct rig_exec x = foreground(s, cases[i].command);
        rig_run(r, &x);
        if (x.end.code != cases[i].code || x.end.signal != cases[i].signal
            || x.end.flags != SILT_END_SHELL)
            fail_msg("'%s': code %d flags %u", cases[i].command, x.end.code, x.end.flags);
        rig_expect(r, SILT_AGENT_DIED, s, &f);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(session_that_can_no_longer_be_driven_ends)
{
    static const char *const commands[] = {"set -r", "set -n", "command() { :; }",
                                           "command() { false; }"};
    RIG();
    for (size_t i = 0; i < SILT_COUNT(commands); i++) {
        struct rig_frame f;
        uint64_t s = rig_open(r, "/tmp", NULL);
        struct rig_exec x = foreground(s, commands[i]);
        rig_run(r, &x);
        assert_int_equal(x.end.flags, SILT_END_SHELL);
        rig_expect(r, SILT_AGENT_DIED, s, &f);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(session_survives_a_command_that_closes_every_descriptor)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=kept; for fd in {3..255}; do eval \"exec $fd>&-\"; done", "", NULL);
    (void)rig_check(r, s, "echo $X; cat; read x; echo $?", "kept\n1\n", "");
    (void)rig_check(r, s, "exec <&- >&- 2>&-; exec 10>&- 11>&- 12>&-", "", NULL);
    (void)rig_check(r, s, "echo $X; exec 200>/tmp/lock; echo held >&200", "kept\n", "");
    (void)rig_check(r, s, "echo more >&200; cat /tmp/lock", "held\nmore\n", "");
    rig_stop(r);
}

TEST(session_whose_shell_is_killed_between_commands_died)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    char text[64];
    (void)snprintf(text, sizeof(text), "kill -9 %d", rig_shell_pid(r));
    struct rig_exec x = {.command = text, .mode = SILT_EXEC_PLAIN, .cwd = "/", .env = "PATH=/bin"};
    struct rig_frame f;
    rig_send(r, &x);
    rig_expect(r, SILT_AGENT_DIED, s, &f);
    assert_int_equal(((struct silt_agent_end *)(void *)f.body)->signal, SIGKILL);
    rig_until_ended(r, &x);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_jobs_neither_delay_nor_die_of_the_end_of_their_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "mkfifo /tmp/go", "", "");
    (void)rig_check(r, s, "(read x < /tmp/go; echo late; echo lived > /tmp/lived) & echo now",
                    "now\n", "");
    (void)rig_check(r, s, "jobs -r | wc -l", "1\n", "");
    (void)rig_check(r, s, "echo > /tmp/go; wait; cat /tmp/lived", "lived\n", "");
    (void)rig_check(r, s, "echo clean", "clean\n", "");
    rig_stop(r);
}

TEST(session_keeps_what_a_filter_writes_just_after_the_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "echo late > >(cat)");
    int kept = 0;
    for (int i = 0; i < 20; i++) {
        rig_run(r, &x);
        kept += strcmp(x.out, "late\n") == 0;
    }
    assert_in_range(kept, 15, 20); /* its patience ends where the machine is hopelessly busy */
    rig_free(&x);
    rig_stop(r);
}

TEST(session_jobs_that_write_without_end_disturb_nobody)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "yes & echo $!");
    rig_run(r, &x);
    for (int i = 0; i < 100; i++)
        (void)rig_check(r, s, "echo quick", "quick\n", "");
    (void)rig_check(r, s, "jobs -r | wc -l; kill %1; wait %1 2>/dev/null; echo $?", "1\n143\n",
                    NULL);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_with_many_jobs_keeps_the_younger_ones)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    for (int i = 0; i < 80; i++)
        (void)rig_check(r, s, "sleep 100 &", "", "");
    (void)rig_check(r, s, "jobs -r | wc -l", "80\n", "");
    rig_stop(r);
}

TEST(session_survives_a_guest_that_plays_with_the_directory)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "rm /dev/silt/0o; echo a", "a\n", "");
    (void)rig_check(r, s, "echo b", "b\n", "");
    (void)rig_check(r, s, "rm /dev/silt/0e; ln -s /etc/passwd /dev/silt/0e", "", "");
    (void)rig_check(r, s, "echo c >&2", "", "c\n");
    (void)rig_check(r, s, "rm /dev/silt/0o; mkdir /dev/silt/0o", "", "");
    (void)rig_check(r, s, "echo d", "d\n", "");
    (void)rig_check(
        r, s,
        "printf 'junk\\0' >> /dev/silt/0s; printf '1\\0002\\0003\\000' >> /dev/silt/0s; echo e",
        "e\n", "");
    (void)rig_check(r, s, "head -c 100000 /dev/zero > /dev/silt/0s; echo f", NULL, NULL);
    (void)rig_check(r, s, "echo g", "g\n", "");
    rig_stop(r);
}

TEST(session_whose_gate_is_taken_away_ends)
{
    static const char *const commands[] = {"rm /dev/silt/0?", "rm /dev/silt/0[gh]"};
    RIG();
    for (size_t i = 0; i < SILT_COUNT(commands); i++) {
        struct rig_frame f;
        uint64_t s = rig_open(r, "/tmp", NULL);
        struct rig_exec x = foreground(s, commands[i]);
        rig_run(r, &x);
        rig_expect(r, SILT_AGENT_DIED, s, &f);
        rig_free(&x);
    }
    rig_stop(r);
}

TEST(session_whose_gate_is_taken_away_from_outside_ends_with_the_next_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "echo a", "a\n", "");
    struct rig_exec plain = {
        .command = "/bin/rm /dev/silt/0[ghij]", .cwd = "/tmp", .mode = SILT_EXEC_PLAIN};
    rig_run(r, &plain);
    assert_false(plain.failed);
    struct rig_exec x = foreground(s, "echo b");
    rig_run(r, &x);
    /* If it had not reached the gate yet it has ended already. */
    if (x.failed ? x.error.code != SILT_GONE : x.end.flags != SILT_END_SHELL)
        fail_msg("%s, code %d flags %u", x.failed ? x.error.text : "ended", x.end.code,
                 x.end.flags);
    rig_free(&plain);
    rig_free(&x);
    rig_stop(r);
}

TEST(session_leaves_nothing_of_a_large_command_in_the_directory)
{
    static char command[300000];
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, NULL);
    memset(command, ' ', sizeof(command));
    memcpy(command, "echo large", 10);
    rig_send_large(r, &x, (silt_slice){command, sizeof(command)});
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "large\n");
    (void)rig_check(r, s, "cat /dev/silt/0[ij] | wc -c", "8192\n", "");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_says_nothing_of_the_start_when_nobody_asks)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "echo a");
    x.flags = SILT_START_QUIET;
    rig_run(r, &x);
    assert_false(x.started);
    assert_string_equal(x.out, "a\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(session_whose_shell_is_stopped_goes_on)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "kill -STOP $$; echo on", "on\n", "");
    (void)rig_check(r, s, "(setsid sh -c \"sleep 0.1; kill -STOP $$\" >/dev/null 2>&1 &)", "", "");
    struct rig_exec plain = {.command = "/bin/sleep 0.5", .cwd = "/tmp", .mode = SILT_EXEC_PLAIN};
    rig_run(r, &plain);
    assert_false(plain.failed);
    (void)rig_check(r, s, "echo on", "on\n", "");
    rig_free(&plain);
    rig_stop(r);
}

TEST(session_whose_shell_is_stopped_can_be_closed)
{
    RIG();
    uint64_t busy = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(busy, "kill -STOP $$; sleep 100");
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_close(r, busy);
    uint64_t idle = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, idle, "(setsid sh -c \"sleep 0.1; kill -STOP $$\" >/dev/null 2>&1 &)", "",
                    "");
    struct rig_exec plain = {.command = "/bin/sleep 0.5", .cwd = "/tmp", .mode = SILT_EXEC_PLAIN};
    rig_run(r, &plain);
    assert_false(plain.failed);
    rig_close(r, idle);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_free(&plain);
    rig_stop(r);
}

TEST(two_sessions_run_at_once)
{
    RIG();
    uint64_t a = rig_open(r, "/tmp", NULL);
    uint64_t b = rig_open(r, "/usr", NULL);
    struct rig_exec x = foreground(a, "read < /tmp/fifo; pwd");
    (void)rig_check(r, a, "mkfifo /tmp/fifo", "", "");
    rig_send(r, &x);
    rig_until_started(r, &x);
    (void)rig_check(r, b, "pwd; echo > /tmp/fifo", "/usr\n", "");
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "/tmp\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(a_busy_session_refuses_a_second_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "sleep 100");
    struct rig_exec y = foreground(s, "echo no");
    rig_send(r, &x);
    rig_run(r, &y);
    assert_true(y.failed);
    assert_int_equal(y.error.code, SILT_CONFLICT);
    rig_free(&x);
    rig_free(&y);
    rig_stop(r);
}

TEST(a_command_may_be_sent_right_behind_the_opening)
{
    RIG();
    struct silt_agent_start head = {.cwd_len = 4, .env_len = 10};
    char body[64];
    memcpy(body, &head, sizeof(head));
    memcpy(body + sizeof(head), "/usrPATH=/bin", 14);
    rig_say(r, SILT_AGENT_OPEN, 7, body, sizeof(head) + 14);
    struct rig_exec x = foreground(7, "pwd");
    rig_run(r, &x);
    assert_string_equal(x.out, "/usr\n");
    rig_free(&x);
    rig_stop(r);
}

TEST(closing_a_session_ends_all_that_it_started)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "(setsid sh -c 'trap \"\" TERM HUP; sleep 100' &); sleep 100 &", "", "");
    struct rig_exec x = {.command = "sleep 100", .session = s, .mode = SILT_EXEC_BACKGROUND};
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_close(r, s);
    assert_true(x.ended);
    assert_int_equal(x.end.code, 137);
    rig_until_count(r, 0);
    char names[256];
    assert_int_equal(rig_directory_files(r, names, sizeof(names)), 2);
    rig_close(r, s); /* once more is fine */
    rig_free(&x);
    rig_stop(r);
}

TEST(closing_a_session_kills_a_shell_that_does_not_go)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "trap 'while :; do :; done' TERM EXIT", "", "");
    int64_t from = rig_now_us();
    rig_close(r, s);
    assert_true(rig_now_us() - from >= 900000);
    assert_int_equal(rig_count_all(r), 0);
    rig_stop(r);
}

TEST(closing_a_session_does_not_wait_for_a_shell_that_ignores_signals)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "trap '' TERM HUP; trap 'echo went > /tmp/how' EXIT", "", "");
    rig_close(r, s);
    assert_int_equal(rig_count_all(r), 0);
    struct rig_exec x = {.command = "cat /tmp/how", .mode = SILT_EXEC_PLAIN, .cwd = "/"};
    rig_run(r, &x);
    assert_string_equal(x.out, "went\n"); /* by itself: it was not killed */
    rig_free(&x);
    rig_stop(r);
}

TEST(closing_a_busy_session_ends_its_command)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec x = foreground(s, "sleep 100");
    rig_send(r, &x);
    rig_until_started(r, &x);
    rig_close(r, s);
    assert_true(x.ended);
    assert_int_equal(x.end.flags, SILT_END_SHELL);
    assert_int_equal(rig_count_all(r), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(sixty_four_sessions_are_the_limit)
{
    RIG();
    struct silt_agent_start head = {0};
    struct rig_frame f;
    for (int i = 0; i < SILT_SESSIONS_MAX; i++)
        (void)rig_open(r, "/tmp", NULL);
    rig_say(r, SILT_AGENT_OPEN, 9999, &head, sizeof(head));
    rig_expect(r, SILT_AGENT_FAILED, 9999, &f);
    assert_int_equal(((struct silt_error *)(void *)f.body)->code, SILT_LIMIT);
    rig_stop(r);
}

TEST(sessions_work_in_version_2_groups)
{
    RIG(.mode = 2);
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "echo hi; sleep 100 & (setsid sleep 100 &)", "hi\n", "");
    assert_int_equal(rig_count_all(r), 3);
    rig_close(r, s);
    assert_int_equal(rig_count_all(r), 0);
    rig_stop(r);
}
