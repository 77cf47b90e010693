/* SPDX-License-Identifier: Apache-2.0 */
/* Programs without a shell, other users, secrets. */
#include "unit/agent/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static struct rig_exec program(const char *a, const char *b, const char *c)
{
    return (struct rig_exec){.args = {a, b, c},
                             .command = "",
                             .mode = SILT_EXEC_PLAIN,
                             .cwd = "/tmp",
                             .env = "PATH=/usr/bin:/bin",
                             .flags = SILT_START_ARGV};
}

static struct rig_exec plain(const char *command)
{
    return (struct rig_exec){
        .command = command, .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/usr/bin:/bin"};
}

static void check(struct rig *r, struct rig_exec *x, const char *out)
{
    rig_run(r, x);
    if (x->failed || strcmp(x->out, out) != 0)
        fail_msg("printed '%s', not '%s' (%s%s)", x->out, out, x->err,
                 x->failed ? x->error.text : "");
    rig_free(x);
}

static void check_fails(struct rig *r, struct rig_exec *x, enum silt_code code, const char *word)
{
    rig_run(r, x);
    assert_true(x->failed);
    if (x->error.code != code || strstr(x->error.text, word) == NULL)
        fail_msg("%s: %s", silt_code_name(x->error.code), x->error.text);
    rig_free(x);
}

TEST(program_gets_its_arguments_as_they_are)
{
    RIG();
    struct rig_exec x = program("printf", "[%s]\n", "a b;$(echo no) *'\"");
    check(r, &x, "[a b;$(echo no) *'\"]\n");
    x = program("printf", "[%s]", "");
    check(r, &x, "[]");
    x = program("/bin/echo", "hi", NULL);
    check(r, &x, "hi\n");
    x = program("pwd", NULL, NULL);
    check(r, &x, "/tmp\n");
    rig_stop(r);
}

TEST(program_is_looked_up_in_the_path_of_its_environment)
{
    RIG();
    struct rig_exec x = plain("mkdir a b; printf '#!/bin/sh\necho a' > a/prog; "
                              "printf '#!/bin/sh\necho b' > b/prog; chmod +x b/prog");
    rig_run(r, &x);
    rig_free(&x);
    x = program("prog", NULL, NULL);
    x.env = "PATH=/none:/tmp/a:/tmp/b:/bin";
    check(r, &x, "b\n"); /* the first may not be started */
    x = program("./b/prog", NULL, NULL);
    check(r, &x, "b\n");
    x = program("prog", NULL, NULL);
    x.env = "PATH=";
    x.cwd = "/tmp/b";
    check(r, &x, "b\n"); /* an empty directory is this one */
    x = program("sh", "-c", "echo usual");
    x.env = "A=1";
    check(r, &x, "usual\n");
    rig_stop(r);
}

TEST(program_that_cannot_be_started_is_named)
{
    RIG();
    struct rig_exec x = plain("printf 'text' > nox; printf '\\1\\2' > odd; chmod +x odd");
    rig_run(r, &x);
    rig_free(&x);
    x = program("no-such-program", NULL, NULL);
    check_fails(r, &x, SILT_NOT_FOUND, "no-such-program");
    x = program("/tmp/nox/x", NULL, NULL);
    check_fails(r, &x, SILT_NOT_FOUND, "/tmp/nox/x");
    x = program("./nox", NULL, NULL);
    check_fails(r, &x, SILT_DENIED, "./nox");
    x = program("nox", NULL, NULL);
    x.env = "PATH=/none:/tmp";
    check_fails(r, &x, SILT_DENIED, "nox");
    x = program("/tmp/odd", NULL, NULL);
    check_fails(r, &x, SILT_INVALID, "odd");
    static char large[50 << 10];
    memset(large, 'x', sizeof(large) - 1);
    x = program(large, NULL, NULL);
    check_fails(r, &x, SILT_NOT_FOUND, "xxx");
    rig_stop(r);
}

/* ---- users ---- */

static const char passwd[] = "cp /etc/group g; cat > p <<'E'\nroot:x:0:0:root:/root:/bin/bash\n"
                             "joe:x:1000:1001:Joe:/home/it's joe:/bin/sh\nE\n"
                             "echo 'tools:x:50:nobody,joe' >> g; echo 'more:x:51:joe' >> g; "
                             "mount --bind p /etc/passwd; mount --bind g /etc/group; chmod 777 .";

static void make_users(struct rig *r)
{
    struct rig_exec x = plain(passwd);
    rig_run(r, &x);
    assert_int_equal(x.end.code, 0);
    rig_free(&x);
}

TEST(user_by_name_has_groups_home_and_name)
{
    RIG();
    make_users(r);
    struct rig_exec x =
        plain("id -u; id -g; id -G; echo $HOME $USER $LOGNAME; touch mine; "
              "stat -c %u:%g mine; grep CapEff /proc/self/status; echo x > /proc/self/fd/1");
    x.user = "joe";
    check(r, &x,
          "1000\n1001\n1001 50 51\n/home/it's joe joe joe\n1000:1001\n"
          "CapEff:\t0000000000000000\nx\n");
    rig_stop(r);
}

TEST(user_does_not_overrule_the_environment)
{
    RIG();
    make_users(r);
    struct rig_exec x = plain("echo $HOME $USER $LOGNAME");
    x.user = "joe";
    x.env = "PATH=/usr/bin:/bin\nHOME=/tmp\nLOGNAME=jane";
    check(r, &x, "/tmp joe jane\n");
    rig_stop(r);
}

TEST(user_by_number_is_known_or_not)
{
    RIG();
    make_users(r);
    struct rig_exec x = program("sh", "-c", "id -u; id -G; echo $HOME $USER");
    x.user = "1000";
    check(r, &x, "1000\n1001 50 51\n/home/it's joe joe\n");
    x.user = "1000:7";
    check(r, &x, "1000\n7\n/home/it's joe joe\n");
    x.user = "4000";
    check(r, &x, "4000\n0\n/\n");
    x.user = "4000:4001";
    check(r, &x, "4000\n4001\n/\n");
    x.user = "0";
    check(r, &x, "0\n0\n/root root\n");
    rig_stop(r);
}

TEST(user_that_is_not_there_is_named)
{
    static const char *const nobody[] = {"jane", "joe:x",      "1000:",   ":5",
                                         "-1",   "4294967295", "1000:joe"};
    RIG();
    make_users(r);
    for (size_t i = 0; i < SILT_COUNT(nobody); i++) {
        struct rig_exec x = plain("touch /tmp/never");
        x.user = nobody[i];
        check_fails(r, &x, SILT_NOT_FOUND, nobody[i]);
    }
    struct rig_exec x = plain("ls | tr '\\n' ' '");
    check(r, &x, "g p ");
    rig_stop(r);
}

TEST(user_with_odd_files_cannot_hang_or_harm_us)
{
    RIG();
    struct rig_exec made = plain("mkfifo f; mount --bind f /etc/passwd");
    rig_run(r, &made);
    assert_int_equal(made.end.code, 0);
    rig_free(&made);
    struct rig_exec x = program("id", "-u", NULL); /* looks nobody up */
    x.user = "joe";
    check_fails(r, &x, SILT_NOT_FOUND, "joe");
    x.user = "17";
    check(r, &x, "17\n");
    rig_stop(r);
}

TEST(user_with_endless_files_cannot_hang_us)
{
    RIG();
    struct rig_exec made = plain("truncate -s 100G big; mount --bind big /etc/passwd");
    rig_run(r, &made);
    assert_int_equal(made.end.code, 0);
    rig_free(&made);
    struct rig_exec x = program("id", "-u", NULL);
    x.user = "joe";
    check_fails(r, &x, SILT_NOT_FOUND, "joe");
    x.user = "17";
    check(r, &x, "17\n");
    rig_stop(r);
}

TEST(user_of_a_session_command_has_the_session_and_its_own_home)
{
    RIG();
    make_users(r);
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)rig_check(r, s, "X=1; f() { echo f $X; }; chmod 755 /root", "", NULL);
    struct rig_exec x = {.command = "f; id -u; echo $HOME $USER $Y; pwd; sh -c 'echo $LOGNAME'; "
                                    "ls /proc/self/fd | tr '\\n' ' '; echo err > /proc/self/fd/2",
                         .session = s,
                         .mode = SILT_EXEC_BACKGROUND,
                         .env = "Y=2",
                         .user = "joe"};
    rig_run(r, &x);
    assert_string_equal(x.out, "f 1\n1000\n/home/it's joe joe 2\n/tmp\njoe\n0 1 2 3 ");
    assert_string_equal(x.err, "err\n");
    rig_free(&x);
    x.env = "HOME=/other";
    x.command = "echo $HOME $USER";
    rig_run(r, &x);
    assert_string_equal(x.out, "/other joe\n");
    rig_free(&x);
    (void)rig_check(r, s, "echo $HOME [$USER]; export USER=root", "/root []\n", "");
    x.env = NULL;
    x.user = "4000:4001";
    x.command = "id -u; echo $HOME [$USER]";
    check(r, &x, "4000\n/ []\n");
    x.user = "jane";
    check_fails(r, &x, SILT_NOT_FOUND, "jane");
    rig_stop(r);
}

/* ---- secrets ---- */

static int secret(void)
{
    int fd = memfd_create("secret", MFD_CLOEXEC);
    assert_int_equal(write(fd, "word", 4), 4);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

TEST(secret_is_number_three_of_the_command)
{
    RIG();
    struct rig_exec x = plain("cat <&3; ls /proc/self/fd | tr '\\n' ' '");
    x.flags = SILT_START_SECRET;
    x.secret = secret();
    check(r, &x, "word0 1 2 3 4 ");
    (void)close(x.secret);
    x = program("sh", "-c", "cat <&3");
    x.flags |= SILT_START_SECRET;
    x.secret = secret();
    check(r, &x, "word");
    (void)close(x.secret);
    rig_stop(r);
}

TEST(secret_of_a_session_command_is_number_three_too_and_in_no_other)
{
    RIG();
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec other =
        plain("echo up; sleep 0.3; ls -l /proc/self/fd /proc/$$/fd | grep -c secret");
    rig_send(r, &other);
    struct rig_exec x = {.command = "cat <&3; ls /proc/self/fd | tr '\\n' ' '",
                         .session = s,
                         .mode = SILT_EXEC_BACKGROUND,
                         .flags = SILT_START_SECRET | SILT_START_STDIN,
                         .secret = secret()};
    check(r, &x, "word0 1 2 3 4 ");
    (void)close(x.secret);
    (void)rig_check(r, s, "ls -l /proc/self/fd /proc/$$/fd | grep -c secret", "0\n", "");
    rig_until_ended(r, &other);
    assert_string_equal(other.out, "up\n0\n");
    rig_free(&other);
    struct rig_exec gone = plain("ls -l /proc/1/fd 2>/dev/null | grep -c secret");
    check(r, &gone, "0\n");
    rig_stop(r);
}

TEST(descriptors_that_do_not_fit_the_flags_are_refused)
{
    RIG();
    struct rig_exec x = plain("echo no");
    x.flags = SILT_START_LOG | SILT_START_SECRET;
    x.log = x.secret = secret();
    rig_run(r, &x);
    assert_false(x.failed);
    rig_free(&x);
    (void)close(x.log);
    uint64_t s = rig_open(r, "/tmp", NULL);
    struct rig_exec fore = {.command = "echo no", .session = s, .mode = SILT_EXEC_FOREGROUND};
    fore.flags = SILT_START_STDIN;
    check_fails(r, &fore, SILT_PROTOCOL, "flags");
    fore.flags = 0;
    fore.user = "root";
    check_fails(r, &fore, SILT_PROTOCOL, "flags");
    rig_stop(r);
}

static void read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;
    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = 0;
}

TEST(program_writes_into_pipes_that_siltd_made)
{
    RIG();
    int out[2], err[2], lines[2];
    char text[64];
    assert_int_equal(pipe2(out, O_CLOEXEC) + pipe2(err, O_CLOEXEC) + pipe2(lines, O_CLOEXEC), 0);
    struct rig_exec x = program("sh", "-c", "echo out; echo err >&2; echo line >&4; exit 3");
    x.flags |= SILT_START_PIPES;
    x.pipes[0] = out[1];
    x.pipes[1] = err[1];
    x.pipes[2] = lines[1];
    rig_send(r, &x);
    assert_int_equal(close(out[1]) + close(err[1]) + close(lines[1]), 0);
    rig_until_ended(r, &x);
    assert_int_equal(x.end.code, 3);
    assert_int_equal(x.out_len + x.err_len, 0);
    read_all(out[0], text, sizeof(text)); /* to its end: silt-init has no copy */
    assert_string_equal(text, "out\n");
    read_all(err[0], text, sizeof(text));
    assert_string_equal(text, "err\n");
    read_all(lines[0], text, sizeof(text));
    assert_string_equal(text, "line\n");
    assert_int_equal(close(out[0]) + close(err[0]) + close(lines[0]), 0);
    rig_free(&x);
    rig_stop(r);
}

TEST(pipes_are_for_a_command_without_session_and_log)
{
    RIG();
    struct rig_exec x = program("true", NULL, NULL);
    x.flags |= SILT_START_PIPES | SILT_START_LOG;
    x.log = x.pipes[0] = x.pipes[1] = x.pipes[2] = STDERR_FILENO;
    check_fails(r, &x, SILT_PROTOCOL, "flags");
    x = plain("true");
    x.flags = SILT_START_PIPES;
    x.pipes[0] = x.pipes[1] = x.pipes[2] = STDERR_FILENO;
    check_fails(r, &x, SILT_PROTOCOL, "flags");
    rig_stop(r);
}

TEST(interrupt_reaches_the_group_and_nobody_who_left_it)
{
    RIG();
    struct rig_exec x = plain("trap 'kill -0 $a && echo alive; kill $a; exit 5' INT; "
                              "setsid sh -c 'echo left; exec sleep 100' & a=$!; "
                              "while :; do sleep 0.01; done");
    rig_send(r, &x);
    rig_until_out(r, &x, "left");
    struct silt_agent_kill k = {.signal = SIGINT, .target = SILT_KILL_GROUP};
    rig_say(r, SILT_AGENT_KILL, x.id, &k, sizeof(k));
    rig_until_ended(r, &x);
    assert_string_equal(x.out, "left\nalive\n");
    assert_int_equal(x.end.code, 5);
    rig_free(&x);
    rig_stop(r);
}
