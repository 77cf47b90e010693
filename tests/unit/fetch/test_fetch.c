/* SPDX-License-Identifier: Apache-2.0 */
/* silt-fetch as silt-priv starts it: root of a user namespace with 65,536 ids, the output directory
 * as the current one. Needs root; the program's path is the argument. */
#include "wire/priv.h"

#include "base/fd.h"
#include "tar.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#define TEST(name) static void name(void **state)

enum { IDS = 0x0ff00000, RESULT = 3 };

static char *program;
static struct silt_error e;
static char directory[] = "/tmp/silt-fetch-XXXXXX";

struct run {
    struct silt_fetch_result result;
    ssize_t size; /* of what came through the result pipe */
    int status;
};

static _Noreturn void child(int in, int out, int go)
{
    char byte;
    /* Opened as root: the ids of images may not pass through root's home. */
    int file = open(program, O_PATH | O_CLOEXEC);
    if (unshare(CLONE_NEWUSER) < 0 || write(go, "u", 1) != 1 || read(go, &byte, 1) != 1)
        _exit(90);
    if (setgid(0) < 0 || setuid(0) < 0 || chdir(directory) < 0)
        _exit(91);
    if (dup2(in, 0) < 0 || dup2(out, RESULT) < 0)
        _exit(92);
    char *const args[] = {(char[]){"silt-fetch"}, NULL};
    (void)execveat(file, "", args, environ, AT_EMPTY_PATH);
    _exit(93);
}

static void map_ids(pid_t pid)
{
    char path[64], text[64];
    const char *const files[] = {"uid_map", "gid_map"};
    (void)snprintf(text, sizeof(text), "0 %d %d", IDS, SILT_SLOT_IDS);
    for (size_t i = 0; i < SILT_COUNT(files); i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
        if (silt_fd_put(AT_FDCWD, path, text, &e) < 0)
            fail_msg("%s", e.text);
    }
}

/* Takes the write end of `result`. */
static pid_t start_fetch(int in, int result[2])
{
    int go[2];
    char byte;
    assert_int_equal(silt_fd_pair(SOCK_STREAM, go, &e), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(in, fcntl(result[1], F_DUPFD_CLOEXEC, 20), go[1]);
    silt_close_fd(&result[1]);
    silt_close_fd(&go[1]);
    assert_int_equal(read(go[0], &byte, 1), 1);
    map_ids(pid);
    assert_int_equal(write(go[0], "m", 1), 1);
    silt_close_fd(&go[0]);
    return pid;
}

static struct run run_fetch(silt_slice tar)
{
    struct run r = {0};
    int result[2];
    silt_auto_fd in = memfd_create("tar", MFD_CLOEXEC);
    struct silt_fetch_order order = {.format = SILT_FETCH_AUTO};
    assert_int_equal(write(in, &order, sizeof(order)), sizeof(order));
    assert_int_equal(silt_fd_write_all(in, tar, &e), 0);
    assert_int_equal(lseek(in, 0, SEEK_SET), 0);
    assert_int_equal(pipe2(result, O_CLOEXEC), 0);
    pid_t pid = start_fetch(in, result);
    r.size = read(result[0], &r.result, sizeof(r.result));
    assert_int_equal(waitpid(pid, &r.status, 0), pid);
    silt_close_fd(&result[0]);
    return r;
}

static int start(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof(directory), "/tmp/silt-fetch-XXXXXX");
    assert_non_null(mkdtemp(directory));
    return chown(directory, IDS, IDS);
}

static int stop(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        (void)execlp("rm", "rm", "-rf", "--", directory, (char *)NULL);
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

TEST(owners_are_kept_within_the_range)
{
    struct stat st;
    char path[64];
    silt_auto_buf tar;
    (void)state;
    silt_buf_init(&tar, TAR_MAX);
    tar_add(&tar, (struct tar_entry){.name = "su", .type = '0', .data = "x", .mode = 04755});
    tar_add(&tar,
            (struct tar_entry){.name = "mail", .type = '5', .mode = 02775, .uid = 65535, .gid = 8});
    tar_end(&tar);
    struct run r = run_fetch(silt_buf_slice(&tar));
    assert_int_equal(r.size, sizeof(r.result));
    if (!r.result.ok)
        fail_msg("%s", r.result.error.text);
    assert_int_equal(r.result.entries, 2);
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 0);
    (void)snprintf(path, sizeof(path), "%s/su", directory);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, IDS);
    assert_int_equal(st.st_mode & 07777, 04755);
    (void)snprintf(path, sizeof(path), "%s/mail", directory);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, IDS + 65535);
    assert_int_equal(st.st_gid, IDS + 8);
    assert_int_equal(st.st_mode & 07777, 02775);
}

TEST(refusal_is_told_with_the_entry)
{
    silt_auto_buf tar;
    (void)state;
    silt_buf_init(&tar, TAR_MAX);
    tar_add(&tar, (struct tar_entry){.name = "../evil", .type = '0', .data = "x"});
    tar_end(&tar);
    struct run r = run_fetch(silt_buf_slice(&tar));
    assert_int_equal(r.size, sizeof(r.result));
    assert_int_equal(r.result.ok, 0);
    assert_int_equal(r.result.error.code, SILT_INVALID);
    assert_non_null(strstr(r.result.error.text, "../evil"));
    assert_true(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1);
}

TEST(many_files_are_unpacked_behind_the_filter)
{
    silt_auto_buf tar;
    char name[64];
    (void)state;
    silt_buf_init(&tar, TAR_MAX);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "directory%d/\xc3\xa4 file %d", i % 50, i);
        tar_add(&tar, (struct tar_entry){.name = name, .type = '0', .data = "some bytes"});
    }
    tar_add(&tar, (struct tar_entry){.name = "queue", .type = '6'});
    tar_add(&tar,
            (struct tar_entry){.name = "twin", .type = '1', .link = "directory1/\xc3\xa4 file 1"});
    tar_add(&tar, (struct tar_entry){.name = "null", .type = '3'});
    tar_end(&tar);
    struct run r = run_fetch(silt_buf_slice(&tar));
    assert_int_equal(r.size, sizeof(r.result));
    if (!r.result.ok)
        fail_msg("%s", r.result.error.text);
    assert_int_equal(r.result.entries, 3003 + 50); /* and the directories */
    assert_int_equal(r.result.bytes, 30000);
}

/* It waits for bytes that never come: only the signal can tell it. */
static void assert_ends(bool is_inside)
{
    int input[2], result[2], status = -1;
    struct silt_fetch_order order = {.format = SILT_FETCH_AUTO};
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(result, O_CLOEXEC), 0);
    assert_int_equal(write(input[1], &order, sizeof(order)), sizeof(order));
    int reader = silt_take_fd(&result[0]);
    if (!is_inside)
        silt_close_fd(&reader); /* before it has begun */
    pid_t pid = start_fetch(input[0], result);
    silt_auto_fd pidfd = pidfd_open(pid, 0);
    struct pollfd death = {.fd = pidfd, .events = POLLIN};
    int left = 1;
    for (int i = 0; is_inside && i < 3000 && left > 0; i++) { /* until it has read its order */
        assert_int_equal(ioctl(input[0], FIONREAD, &left), 0);
        (void)poll(NULL, 0, 10);
    }
    silt_close_fd(&reader);
    assert_int_equal(poll(&death, 1, 30000), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    silt_close_fd(&input[0]);
    silt_close_fd(&input[1]);
}

TEST(it_ends_when_nobody_waits_for_its_result)
{
    (void)state;
    assert_ends(true);
}

TEST(it_ends_when_nobody_has_ever_waited)
{
    (void)state;
    assert_ends(false);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (geteuid() != 0)
        return 77;                                     /* skipped */
    (void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it needs /proc, which the cage has not */
    program = realpath(argv[1], NULL);
    (void)signal(SIGPIPE, SIG_IGN);
#define RUN(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        RUN(owners_are_kept_within_the_range),
        RUN(refusal_is_told_with_the_entry),
        RUN(many_files_are_unpacked_behind_the_filter),
        RUN(it_ends_when_nobody_waits_for_its_result),
        RUN(it_ends_when_nobody_has_ever_waited),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(program);
    return failed;
}
