/* SPDX-License-Identifier: Apache-2.0 */
/* A worker in a process of its own, asked to watch a directory below /tmp. */
#include "worker/task.h"
#include "base/clock.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct {
    char dir[64];
    int sock;
    pid_t pid;
    char bytes[SILT_FRAME_MAX];
    size_t at, len;
    uint32_t flags, type;
} rig;

static void begin(void)
{
    struct silt_error e;
    int pair[2];
    (void)snprintf(rig.dir, sizeof(rig.dir), "/tmp/silt-watch-XXXXXX");
    assert_non_null(mkdtemp(rig.dir));
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    rig.pid = fork();
    if (rig.pid == 0) {
        (void)close(pair[0]);
        silt_worker_serve(pair[1]);
        _exit(0);
    }
    (void)close(pair[1]);
    rig.sock = pair[0];
    rig.at = rig.len = 0;
}

static void ask(const char *path, uint32_t flags, silt_slice patterns)
{
    static char out[8192];
    struct silt_frame f = {.type = SILT_WORKER_WATCH};
    struct silt_worker_ask a = {.flags = flags,
                                .limit = 31,
                                .path_len = (uint32_t)strlen(path),
                                .text_len = (uint32_t)patterns.len};
    memcpy(out, &f, sizeof(f));
    memcpy(out + sizeof(f), &a, sizeof(a));
    memcpy(out + sizeof(f) + sizeof(a), path, a.path_len);
    if (patterns.len > 0)
        memcpy(out + sizeof(f) + sizeof(a) + a.path_len, patterns.data, patterns.len);
    size_t len = sizeof(f) + sizeof(a) + a.path_len + patterns.len;
    assert_int_equal(send(rig.sock, out, len, 0), len);
}

static void receive(void)
{
    struct pollfd p = {.fd = rig.sock, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 60000), 1);
    ssize_t n = recv(rig.sock, rig.bytes, sizeof(rig.bytes), 0);
    assert_true(n >= (ssize_t)sizeof(struct silt_frame));
    const struct silt_frame *f = (const void *)rig.bytes;
    rig.type = f->type;
    rig.flags = f->flags;
    rig.at = sizeof(*f);
    rig.len = (size_t)n;
}

/* The next event as "what path", relative to the directory. */
static void expect(uint32_t what, const char *name)
{
    struct silt_worker_event v;
    char want[256];
    if (rig.at == rig.len)
        receive();
    assert_int_equal(rig.type, SILT_WORKER_SAY_EVENT);
    memcpy(&v, rig.bytes + rig.at, sizeof(v));
    (void)snprintf(want, sizeof(want), "%s%s%s", rig.dir, name[0] != 0 ? "/" : "", name);
    assert_text(((silt_slice){rig.bytes + rig.at + sizeof(v), v.path_len}), want);
    assert_int_equal(v.what, what);
    rig.at += (sizeof(v) + v.path_len + 7) & ~(size_t)7;
}

static char *in(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    (void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", rig.dir, name);
    return path[turn];
}

static void touch(const char *name)
{
    int fd = open(in(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

static void end(void)
{
    int status = -1;
    (void)close(rig.sock);
    assert_int_equal(waitpid(rig.pid, &status, 0), rig.pid); /* it goes when its peer does */
    assert_int_equal(status, 0);
    (void)nftw(rig.dir, drop, 8, FTW_DEPTH | FTW_PHYS);
}

TEST(a_watch_is_ready_then_tells)
{
    begin();
    ask(rig.dir, SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
    expect(SILT_WATCH_READY, "");
    touch("f");
    expect(SILT_WATCH_CREATE, "f");
    expect(SILT_WATCH_MODIFY, "f");
    assert_int_equal(rename(in("f"), in("g")), 0);
    expect(SILT_WATCH_MOVE_FROM, "f");
    expect(SILT_WATCH_MOVE_TO, "g");
    assert_int_equal(unlink(in("g")), 0);
    expect(SILT_WATCH_DELETE, "g");
    end();
}

TEST(what_is_in_a_new_directory_is_told_once_it_is_followed)
{
    begin();
    ask(rig.dir, SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
    expect(SILT_WATCH_READY, "");
    assert_int_equal(kill(rig.pid, SIGSTOP), 0);
    assert_int_equal(mkdir(in("d"), 0755), 0);
    assert_int_equal(mkdir(in("d/e"), 0755), 0);
    touch("d/e/f");
    assert_int_equal(kill(rig.pid, SIGCONT), 0);
    expect(SILT_WATCH_CREATE, "d");
    expect(SILT_WATCH_CREATE, "d/e");
    expect(SILT_WATCH_CREATE, "d/e/f");
    assert_int_equal(unlink(in("d/e/f")), 0);
    expect(SILT_WATCH_DELETE, "d/e/f");
    end();
}

TEST(a_directory_that_is_moved_is_told_under_its_new_name)
{
    begin();
    assert_int_equal(mkdir(in("a"), 0755), 0);
    assert_int_equal(mkdir(in("a/b"), 0755), 0);
    ask(rig.dir, SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
    expect(SILT_WATCH_READY, "");
    assert_int_equal(kill(rig.pid, SIGSTOP), 0);
    assert_int_equal(rename(in("a"), in("n")), 0);
    touch("n/b/f");
    assert_int_equal(kill(rig.pid, SIGCONT), 0);
    expect(SILT_WATCH_MOVE_FROM, "a");
    expect(SILT_WATCH_MOVE_TO, "n");
    expect(SILT_WATCH_CREATE, "n/b/f");
    expect(SILT_WATCH_MODIFY, "n/b/f");
    end();
}

TEST(excluded_directories_are_not_entered)
{
    begin();
    assert_int_equal(mkdir(in("skip"), 0755), 0);
    ask(rig.dir, SILT_WORKER_RECURSIVE, SILT_LIT("skip\0*.o\0"));
    expect(SILT_WATCH_READY, "");
    touch("skip/f");
    touch("x.o");
    touch("end");
    expect(SILT_WATCH_CREATE, "end");
    end();
}

TEST(a_watch_ends_with_its_directory_and_the_worker_is_free_again)
{
    begin();
    assert_int_equal(mkdir(in("d"), 0755), 0);
    for (int i = 0; i < 2; i++) {
        ask(in("d"), SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
        expect(SILT_WATCH_READY, "d");
        assert_int_equal(rmdir(in("d")), 0);
        expect(SILT_WATCH_DELETE, "d");
        expect(SILT_WATCH_GONE, "d");
        assert_true((rig.flags & SILT_WORKER_LAST) != 0);
        assert_int_equal(mkdir(in("d"), 0755), 0);
    }
    end();
}

/* ---- whatever happens to directories ---- */

static char directories[512][128];
static size_t directory_count;

static int note_directory(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)w;
    if (kind == FTW_D && directory_count < SILT_COUNT(directories)
        && strlen(path) < sizeof(directories[0]))
        (void)snprintf(directories[directory_count++], sizeof(directories[0]), "%s", path);
    return 0;
}

static void churn(unsigned *seed)
{
    char to[160];
    directory_count = 0;
    (void)nftw(rig.dir, note_directory, 8, FTW_PHYS);
    *seed = *seed * 1103515245 + 12345;
    unsigned n = *seed >> 8;
    const char *a = directories[n % directory_count], *b = directories[n / 7 % directory_count];
    (void)snprintf(to, sizeof(to), "%.120s/n%u", b, n % 9);
    if (n % 5 < 2)
        (void)mkdir(to, 0755);
    else if (n % 5 < 4 && strcmp(a, rig.dir) != 0)
        (void)rename(a, to);
    else if (directory_count > 20 && strcmp(a, rig.dir) != 0)
        (void)nftw(a, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static bool is_marker(silt_slice path, size_t i)
{
    char want[160];
    (void)snprintf(want, sizeof(want), "%.120s/marker", directories[i]);
    return silt_slice_eq(path, silt_slice_of(want));
}

static bool seen[SILT_COUNT(directories)];

/* In each directory that was not heard of yet. */
static void put_markers(void)
{
    char path[160];
    for (size_t i = 0; i < directory_count; i++) {
        if (seen[i])
            continue;
        (void)snprintf(path, sizeof(path), "%.120s/marker", directories[i]);
        (void)unlink(path);
        assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), 0);
    }
}

/* How many markers the next event is about. */
static size_t hear(void)
{
    struct silt_worker_event v;
    size_t found = 0;
    if (rig.at == rig.len)
        receive();
    memcpy(&v, rig.bytes + rig.at, sizeof(v));
    silt_slice path = {rig.bytes + rig.at + sizeof(v), v.path_len};
    rig.at += (sizeof(v) + v.path_len + 7) & ~(size_t)7;
    for (size_t i = 0; v.what == SILT_WATCH_CREATE && i < directory_count; i++)
        if (!seen[i] && is_marker(path, i))
            found += seen[i] = true;
    if (v.what == SILT_WATCH_OVERFLOW) /* some went by unheard: from now on none does */
        put_markers();
    return found;
}

/* Now that nothing moves any more, each directory is followed. */
static void hear_of_all(void)
{
    directory_count = 0;
    (void)nftw(rig.dir, note_directory, 8, FTW_PHYS);
    memset(seen, 0, sizeof(seen));
    put_markers();
    for (size_t left = directory_count; left > 0;)
        left -= hear();
}

TEST(whatever_happens_each_directory_is_followed_under_the_name_it_has)
{
    for (unsigned seed = 1; seed <= 5; seed++) {
        unsigned s = seed;
        begin();
        ask(rig.dir, SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
        expect(SILT_WATCH_READY, "");
        for (int i = 0; i < 300; i++)
            churn(&s);
        hear_of_all();
        end();
    }
}

/* By descriptor: the paths change all the time. */
static int make_directory(int at, const char *name)
{
    assert_int_equal(mkdirat(at, name, 0755), 0);
    int fd = openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void spin(unsigned us)
{
    int64_t until = silt_clock_us() + us;
    while (silt_clock_us() < until)
        continue;
}

/* Whatever was told before this name was. */
static void hear_until(const char *name)
{
    struct silt_worker_event v;
    silt_slice path;
    touch(name);
    do {
        if (rig.at == rig.len)
            receive();
        memcpy(&v, rig.bytes + rig.at, sizeof(v));
        path = (silt_slice){rig.bytes + rig.at + sizeof(v), v.path_len};
        rig.at += (sizeof(v) + v.path_len + 7) & ~(size_t)7;
    } while (v.what != SILT_WATCH_CREATE || !silt_slice_eq(path, silt_slice_of(in(name))));
    assert_int_equal(unlink(in(name)), 0);
}

/* The last rename comes sooner or later after the others: sometimes just when these are looked at
 * again. */
TEST(a_directory_is_not_lost_when_one_far_above_it_moves_while_it_is_looked_at)
{
    begin();
    int top = make_directory(AT_FDCWD, in("a")), mid = make_directory(top, "m");
    int one = make_directory(mid, "one"), two = make_directory(mid, "two");
    (void)close(make_directory(one, "x"));
    ask(rig.dir, SILT_WORKER_RECURSIVE, (silt_slice){NULL, 0});
    expect(SILT_WATCH_READY, "");
    for (unsigned i = 0; i < 400; i++) {
        assert_int_equal(renameat(one, "x", two, "x"), 0);
        assert_int_equal(renameat(two, "x", one, "x"), 0);
        spin(i % 100 * 3);
        assert_int_equal(rename(in(i % 2 == 0 ? "a" : "b"), in(i % 2 == 0 ? "b" : "a")), 0);
        hear_until("sync");
    }
    hear_of_all();
    for (int fd[] = {top, mid, one, two}, i = 0; i < 4; i++)
        (void)close(fd[i]);
    end();
}

TEST(a_missing_path_fails_with_its_errno)
{
    begin();
    ask(in("nowhere"), 0, (silt_slice){NULL, 0});
    receive();
    assert_int_equal(rig.type, SILT_WORKER_SAY_FAILED);
    const struct silt_error *e = (const void *)(rig.bytes + rig.at);
    assert_int_equal(e->code, SILT_NOT_FOUND);
    end();
}
