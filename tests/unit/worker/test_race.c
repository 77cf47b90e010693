/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody else exchanges what the operations work on: a file, a directory, a FIFO, a link to a
 * directory outside. Nothing outside may be read or changed by what follows no links, and nothing
 * may hang. */
#include "unit/worker/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 10000 };

static void make_kind(unsigned kind, const char *name)
{
    char inner[64];
    int fd;
    switch (kind % 4) {
    case 0:
        (void)mkdir(name, 0755);
        (void)snprintf(inner, sizeof(inner), "%s/inner", name);
        fd = open(inner, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        (void)close(fd);
        break;
    case 1:
        (void)!symlink("../outside", name);
        break;
    case 2:
        (void)mkfifo(name, 0644);
        break;
    default:
        fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        (void)!write(fd, "inside", 6);
        (void)close(fd);
    }
}

static void clear(const char *name)
{
    char inner[64];
    (void)snprintf(inner, sizeof(inner), "%s/inner", name);
    struct stat st;
    if (lstat(name, &st) == 0 && S_ISDIR(st.st_mode))
        (void)unlink(inner);
    (void)remove(name);
}

static _Noreturn void exchange_for_ever(void)
{
    for (unsigned i = 0;; i++) {
        clear("spare/n");
        make_kind(i * 7 / 3, "spare/n");
        if (renameat2(AT_FDCWD, "spare/n", AT_FDCWD, "tree/x", RENAME_EXCHANGE) < 0)
            (void)rename("spare/n", "tree/x");
    }
}

static pid_t start_exchanging(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        exchange_for_ever();
    return pid;
}

/* How often a read found what: the race is one only if it finds everything. */
static unsigned files, directories, fifos;

static void count(const struct rig_answer *a)
{
    files += !a->failed;
    directories += a->failed && a->error.sys == EISDIR;
    fifos += a->failed && a->error.sys == ENXIO;
}

/* The operations that may touch tree/x and nothing else. */
static void one_round(struct rig *r, unsigned i)
{
    static const struct rig_ask asks[] = {
        {.op = SILT_WORKER_READ, .path = "tree/x", .flags = SILT_WORKER_MIME},
        {.op = SILT_WORKER_WRITE, .path = "tree/x", .text = "written", .flags = SILT_WORKER_ONLY},
        {.op = SILT_WORKER_LIST, .path = "tree", .flags = SILT_WORKER_RECURSIVE},
        {.op = SILT_WORKER_CHMOD,
         .path = "tree",
         .flags = SILT_WORKER_RECURSIVE,
         .ask = {.mode = 0700}},
        {.op = SILT_WORKER_SEARCH, .path = "tree", .text = "secret"},
        {.op = SILT_WORKER_CHOWN,
         .path = "tree",
         .flags = SILT_WORKER_RECURSIVE,
         .ask = {.uid = 3, .gid = 3}},
        {.op = SILT_WORKER_STAT, .path = "tree/x", .flags = SILT_WORKER_MIME},
    };
    static const struct rig_ask takes[] = {
        /* seldom, so that there is something mostly */
        {.op = SILT_WORKER_DELETE, .path = "tree/x", .flags = SILT_WORKER_RECURSIVE},
        {.op = SILT_WORKER_MOVE, .path = "tree/x", .to = "tree/y"},
        {.op = SILT_WORKER_DELETE,
         .path = "tree/y",
         .flags = SILT_WORKER_RECURSIVE | SILT_WORKER_NOFOLLOW},
    };
    bool take = i % 10 == 9;
    struct rig_answer a =
        rig_do(r, take ? &takes[i / 10 % SILT_COUNT(takes)] : &asks[i % SILT_COUNT(asks)]);
    if (!take && i % SILT_COUNT(asks) == 0)
        count(&a);
    assert_null(memmem(a.bytes, a.len, "secret", 6));
    assert_null(memmem(a.bytes, a.len, "keep", 4));
    rig_forget(&a);
}

TEST(exchanged_files_lead_nowhere_in_ten_thousand_rounds)
{
    struct rig *r = rig_start();
    struct stat st;
    assert_int_equal(mkdir("outside", 0755), 0);
    assert_int_equal(mkdir("tree", 0755), 0);
    assert_int_equal(mkdir("spare", 0755), 0);
    rig_put("outside/keep", "secret");
    pid_t other = start_exchanging();
    for (unsigned i = 0; i < ROUNDS; i++)
        one_round(r, i);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_true(files > 0 && directories > 0 && fifos > 0);
    assert_file("outside/keep", "secret");
    assert_int_equal(stat("outside/keep", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(rig_count("outside"), 1);
    assert_true(rig_count("tree") <= 2); /* x, y: no temporary */
    rig_stop(r);
}

/* Readers of a file that is written all the time see one whole content or another. */
TEST(a_write_is_seen_whole_or_not_at_all)
{
    struct rig *r = rig_start();
    char a[4096], b[9000];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    rig_put("f", "aaaa");
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0)
        for (;;) {
            char got[10000];
            int fd = open("f", O_RDONLY | O_CLOEXEC);
            ssize_t n = read(fd, got, sizeof(got));
            if (fd < 0 || (n != 4 && n != sizeof(a) && n != sizeof(b)) || got[0] != got[n - 1])
                _exit(1);
            (void)close(fd);
        }
    for (int i = 0; i < 2000; i++)
        RIG_MUST(.op = SILT_WORKER_WRITE, .path = "f", .flags = SILT_WORKER_ONLY,
                 .text = i % 2 != 0 ? a : b, .text_len = i % 2 != 0 ? sizeof(a) : sizeof(b));
    int status;
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_true(WIFSIGNALED(status)); /* not ended by what it saw */
    assert_int_equal(rig_count("."), 1);
    rig_stop(r);
}
