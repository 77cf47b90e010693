/* SPDX-License-Identifier: Apache-2.0 */
/* priv-fuzz: a siltd that has been taken over asks a real silt-priv for whatever comes to its mind:
 * all operations, values at their bounds, descriptors of every kind, messages of any size, many at
 * once. From time to time, and at the end, a look whether silt-priv answers, the image that root
 * has vouched for is as it was, nothing of the attacker's runs as root, and nothing outside was
 * touched. SILT_FUZZ_SECONDS, SILT_FUZZ_SEED. TAP. Needs root. */
#include "hostile.h"
#include "strange.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

enum {
    SECONDS = 12,
    DIGESTS = 6,
    HELD_MAX = 24,
    PIECE = 60 /* requests between two looks */,
    END_MS = 60000
};

static struct world w;
static const char *build;
static uint64_t state;
static uint8_t
    digests[DIGESTS][SILT_DIGEST_SIZE]; /* [0] is root's; not the plain one, which is left alone */
static char *good, *evil;
static size_t good_len, evil_len;
static uint64_t trusted_hash, outside_hash;
static int held[HELD_MAX]; /* ends of channels and pipes that live on for a while */
static unsigned nheld;
static struct {
    uint64_t asked, answered, fine, vouched;
} count;
static const char *failure;

static uint64_t some(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static bool maybe(unsigned of)
{
    return some(of) == 0;
}

/* ---- requests ---- */

static uint64_t bound(void)
{
    static const uint64_t values[] = {
        0,          1,          2,          15,         16,         17,        64,        255,
        256,        257,        4095,       65535,      65536,      1 << 20,   64 << 20,  INT32_MAX,
        1ULL << 31, UINT32_MAX, 1ULL << 32, 1ULL << 46, 1ULL << 50, INT64_MAX, UINT64_MAX};
    return values[some(SILT_COUNT(values))];
}

static void set_digest(uint8_t ret[SILT_DIGEST_SIZE])
{
    if (maybe(12))
        for (int i = 0; i < SILT_DIGEST_SIZE; i++)
            ret[i] = (uint8_t)some(256);
    else
        memcpy(ret, digests[some(DIGESTS)], SILT_DIGEST_SIZE);
}

static void set_hostname(char ret[SILT_HOSTNAME_SIZE])
{
    if (!maybe(4)) {
        (void)snprintf(ret, SILT_HOSTNAME_SIZE, "box");
        return;
    }
    for (size_t i = 0; i < SILT_HOSTNAME_SIZE; i++)
        ret[i] = (char)some(256);
}

static void fill(struct silt_priv_request *q)
{
    switch ((enum silt_priv_op)q->op) {
    case SILT_PRIV_CREATE:
        q->body =
            create_request(0, IMAGE_PLAIN, maybe(3) ? (uint32_t)some(16) : SILT_CREATE_FRESH).body;
        if (maybe(2))
            set_digest(q->body.create.digest);
        if (maybe(6))
            q->body.create.limits =
                (struct silt_priv_limits){bound(), bound(), (uint32_t)bound(), (uint32_t)bound()};
        if (maybe(6))
            q->body.create.network = (uint32_t)bound();
        if (maybe(6))
            q->body.create.handles = (uint32_t)bound();
        set_hostname(q->body.create.hostname);
        return;
    case SILT_PRIV_CLAIM:
        q->body.claim = (struct silt_priv_claim){.limits = ordinary_limits,
                                                 .keep_limits = (uint32_t)some(2),
                                                 .network = (uint32_t)some(6)};
        set_hostname(q->body.claim.hostname);
        return;
    case SILT_PRIV_IMPORT:
    case SILT_PRIV_EXPORT:
    case SILT_PRIV_COMMIT:
    case SILT_PRIV_DISCARD:
    case SILT_PRIV_FORGET:
        set_digest(q->body.import.digest);
        q->body.import.staging = maybe(8) ? (uint32_t)bound() : (uint32_t)some(3);
        return;
    case SILT_PRIV_SEAL:
        set_digest(q->body.seal.digest);
        set_digest(q->body.seal.parent);
        q->body.seal.soon = (uint32_t)some(2);
        q->body.seal.compare = (uint32_t)some(2);
        return;
    case SILT_PRIV_MAKE:
    case SILT_PRIV_ROLLBACK:
        q->body.make =
            (struct silt_priv_make){.limits = ordinary_limits, .copy = (uint32_t)some(2)};
        if (maybe(6))
            q->body.make.limits =
                (struct silt_priv_limits){bound(), bound(), (uint32_t)bound(), (uint32_t)bound()};
        set_digest(q->body.make.digest);
        return;
    case SILT_PRIV_CONTEXT:
    case SILT_PRIV_REAP:
        q->body.context.number = maybe(2) ? bound() : some(4);
        set_digest(q->body.context.digest);
        return;
    case SILT_PRIV_LOG:
    case SILT_PRIV_UNLOG:
        q->body.log = (struct silt_priv_log){.number = bound(), .fresh = (uint32_t)some(2)};
        return;
    case SILT_PRIV_RECORD:
    case SILT_PRIV_READ_RECORD:
        q->body.recovery.kind = (uint32_t)some(3);
        set_digest(q->body.recovery.digest);
        return;
    case SILT_PRIV_LIMIT:
        q->body.limits =
            (struct silt_priv_limits){bound(), bound(), (uint32_t)bound(), (uint32_t)bound()};
        return;
    case SILT_PRIV_RECORDS:
    case SILT_PRIV_STOP:
    case SILT_PRIV_FREEZE:
    case SILT_PRIV_THAW:
    case SILT_PRIV_DESTROY:
    case SILT_PRIV_STAT:
    case SILT_PRIV_HANDLES:
    case SILT_PRIV_SPOOL:
    case SILT_PRIV_NETWORK:
    case SILT_PRIV_NETSTAT:
    case SILT_PRIV_DIAL:
    case SILT_PRIV_CAPTURE:
    case SILT_PRIV_OP_MAX:
        break;
    }
    q->body.count = maybe(2) ? (uint32_t)bound() : (uint32_t)some(8);
}

/* ---- descriptors ---- */

static void on_alarm(int number)
{
    (void)number;
}

/* Some would keep us as long as they are to keep silt-priv. */
static void let_go(int fd)
{
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    (void)setitimer(ITIMER_REAL, &often, NULL);
    (void)close(fd);
    (void)setitimer(ITIMER_REAL, &never, NULL);
}

static void hold(int fd)
{
    if (nheld == HELD_MAX)
        let_go(held[--nheld]);
    for (unsigned i = nheld++; i > 0; i--)
        held[i] = held[i - 1];
    held[0] = fd;
}

/* The end of a pipe that unpacks something, or of one that nobody reads. */
static int pipe_end(bool reading)
{
    struct silt_fetch_order order = {.format = SILT_FETCH_TAR,
                                     .kind = maybe(6) ? SILT_FETCH_PACK : SILT_FETCH_UNPACK};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    if (reading && !maybe(4)) {
        bool own = maybe(2);
        (void)!write(ends[1], &order, sizeof(order));
        (void)!write(ends[1], own ? evil : good, own ? evil_len : good_len);
    }
    for (int i = 0; i < 2; i++)
        (void)fcntl(ends[i], F_SETFL, 0);
    hold(ends[reading ? 1 : 0]);
    return ends[reading ? 0 : 1];
}

static int channel_end(int type)
{
    int pair[2];
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    hold(pair[0]);
    return pair[1];
}

/* Paths that layers shall leave out. */
static int path_list(void)
{
    static const char *const parts[] = {"/", "..", ".", "a", "usr", "note", "upper", "s", "l", "0"};
    char paths[512];
    size_t len = 0;
    int fd = -1;
    struct silt_error e;
    while (len + 8 < sizeof(paths) && !maybe(40)) {
        const char *part = maybe(2) ? "/" : parts[some(SILT_COUNT(parts))];
        len += (size_t)snprintf(paths + len, sizeof(paths) - len, "%s", part) + maybe(3);
    }
    return silt_fd_seal((silt_slice){paths, len + 1}, &fd, &e) == 0 ? fd : -1;
}

static int right_descriptors(uint32_t op, int fds[SILT_FDS_MAX])
{
    switch (op) {
    case SILT_PRIV_CREATE:
        fds[0] = channel_end(SOCK_SEQPACKET);
        return 1;
    case SILT_PRIV_IMPORT:
        fds[0] = pipe_end(true);
        fds[1] = pipe_end(false);
        return 2;
    case SILT_PRIV_EXPORT:
        fds[0] = pipe_end(true);
        fds[1] = pipe_end(false);
        fds[2] = pipe_end(false);
        return 3;
    case SILT_PRIV_SEAL:
        fds[0] = maybe(2) ? path_list() : -1;
        return 1;
    case SILT_PRIV_CONTEXT:
        for (int i = 0; i < SILT_PRIV_CONTEXT_FDS; i++)
            fds[i] = pipe_end(i == 0);
        return SILT_PRIV_CONTEXT_FDS;
    default:
        return 0;
    }
}

static int descriptors(uint32_t op, int fds[SILT_FDS_MAX])
{
    int n = 0;
    if (!maybe(5))
        return right_descriptors(op, fds);
    for (int wanted = (int)some(4); n < wanted; n++)
        fds[n] = strange_open((enum strange)some(STRANGE_MAX));
    return n;
}

/* ---- talking ---- */

static void take_answers(void)
{
    struct pollfd p = {.fd = w.siltd, .events = POLLIN};
    while (poll(&p, 1, 0) > 0) {
        struct silt_priv_answer a;
        struct silt_parcel in = {.data = &a, .len = sizeof(a)};
        struct silt_error e;
        if (silt_fd_recv(w.siltd, &in, &e) <= 0)
            return;
        count.answered++;
        count.fine += a.ok != 0;
        silt_parcel_close(&in);
    }
}

static void ask_something(void)
{
    static const uint32_t slots[] = {0, 1, 2, 3, SLOTS - 1};
    struct silt_priv_request q = {
        .op = maybe(30) ? (uint32_t)bound() : (uint32_t)some(SILT_PRIV_OP_MAX + 1),
        .slot = maybe(20) ? (uint32_t)bound() : slots[some(SILT_COUNT(slots))],
        .seq = some(4)}; /* the same again and again */
    struct silt_parcel p = {.data = &q, .len = sizeof(q)};
    struct silt_error e;
    fill(&q);
    if (maybe(20))
        for (size_t i = 0; i < sizeof(q.body); i++)
            ((char *)&q.body)[i] = (char)some(256);
    if (maybe(25))
        p.len = 1 + some(sizeof(q));
    int made = descriptors(q.op, p.fds);
    for (int i = 0; i < made; i++)
        if (p.fds[i] >= 0)
            p.fds[p.nfds++] = p.fds[i];
    struct pollfd room = {.fd = w.siltd, .events = POLLOUT};
    if (poll(&room, 1, END_MS) <= 0)
        failure = "silt-priv reads no requests any more";
    else if (silt_fd_send(w.siltd, &p, &e) == 0)
        count.asked++;
    for (int i = 0; i < p.nfds; i++)
        let_go(p.fds[i]);
    take_answers();
}

/* ---- looking ---- */

static void be(bool good_thing, const char *otherwise)
{
    if (!good_thing && failure == NULL)
        failure = otherwise;
}

static bool is_marked(void)
{
    char mark[512], *text = NULL;
    size_t len;
    struct stat st;
    struct silt_error e;
    (void)snprintf(mark, sizeof(mark), "%s", hostile_image(&w, digests[0], ".trusted"));
    if (stat(hostile_image(&w, digests[0], ""), &st) < 0
        || silt_fd_read_file(AT_FDCWD, mark, 64, &text, &len, &e) < 0)
        return false;
    bool same = strtoull(text, NULL, 10) == st.st_ino;
    free(text);
    return same;
}

/* The attacker may have the image forgotten: then root vouches for it again, while all goes on. */
static void look(void)
{
    be(!hostile_is_root(), "a program of the attacker's runs as root");
    if (is_marked())
        be(hostile_hash(hostile_image(&w, digests[0], "")) == trusted_hash || !is_marked(),
           "the image that root vouched for has changed");
    else if (hostile_trust(&w, build, good, good_len))
        count.vouched++;
    trusted_hash = hostile_hash(hostile_image(&w, digests[0], ""));
    be(tell(&w, SILT_PRIV_STAT, 9), "silt-priv does not answer");
    be(waitpid(w.priv, NULL, WNOHANG) == 0, "silt-priv has ended");
}

static void expect_none(const char *top, const char *name)
{
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    be(access(path, F_OK) < 0, "a control group is left");
}

static void expect_no_groups(void)
{
    DIR *d = opendir(w.cgroup);
    for (struct dirent *it = d != NULL ? readdir(d) : NULL; it != NULL; it = readdir(d)) {
        char top[400];
        (void)snprintf(top, sizeof(top), "%s/%s", w.cgroup, it->d_name);
        if (it->d_name[0] != '.')
            expect_none(top, w.instance);
    }
    expect_none(w.cgroup, w.instance);
    if (d != NULL)
        (void)closedir(d);
}

static void expect_no_processes(void)
{
    DIR *d = opendir("/proc");
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d)) {
        struct stat st;
        bool number = it->d_name[0] >= '1' && it->d_name[0] <= '9';
        if (number && fstatat(dirfd(d), it->d_name, &st, 0) == 0)
            be(st.st_uid - w.ids_base >= SLOTS * SILT_SLOT_IDS, "a process of a sandbox is left");
    }
    (void)closedir(d);
}

static int count_mounts(void)
{
    char *text = NULL;
    size_t len;
    struct silt_error e;
    int lines = 0;
    if (silt_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &text, &len, &e) == 0)
        for (size_t i = 0; i < len; i++)
            lines += text[i] == '\n';
    free(text);
    return lines;
}

/* ---- all of it ---- */

static void prepare(void)
{
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/tests/unit/engine/puppet", build);
    good_len = hostile_tar(path, &good);
    (void)snprintf(path, sizeof(path), "%s/tests/unit/engine/evil", build);
    evil_len = hostile_tar(path, &evil);
    hostile_digest(good, good_len, digests[0]);
    for (int i = 1; i < DIGESTS; i++)
        memset(digests[i], 0x50 + i, SILT_DIGEST_SIZE);
    be(hostile_trust(&w, build, good, good_len), "root cannot vouch for an image");
    trusted_hash = hostile_hash(hostile_image(&w, digests[0], ""));
    outside_hash = hostile_hash(w.programs);
}

static void finish(int mounts)
{
    while (nheld > 0)
        let_go(held[--nheld]);
    strange_end();
    take_answers();
    int64_t begun = silt_clock_ms();
    world_end_priv(&w);
    be(silt_clock_ms() - begun < END_MS, "silt-priv takes long to end");
    expect_no_groups();
    expect_no_processes();
    be(count_mounts() == mounts, "a mount is left");
    be(hostile_hash(w.programs) == outside_hash, "a file outside has changed");
}

int main(int argc, char **argv)
{
    const char *seconds = getenv("SILT_FUZZ_SECONDS"), *seed = getenv("SILT_FUZZ_SEED");
    if (argc != 2)
        return 2;
    build = argv[1];
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)silt_clock_us();
    state = state == 0 ? 1 : state;
    printf("# seed %llu\n", (unsigned long long)state);
    world_open(&w, build);
    int mounts = count_mounts();
    world_start_priv(&w, true);
    w.seq = 1 << 20; /* those of ask_something are small */
    prepare();
    int64_t until =
        silt_clock_ms() + 1000 * (seconds != NULL ? strtoll(seconds, NULL, 10) : SECONDS);
    while (failure == NULL && silt_clock_ms() < until) {
        for (int i = 0; i < PIECE && failure == NULL; i++)
            ask_something();
        look();
    }
    finish(mounts);
    world_close(&w);
    printf("# asked %llu, looked at %llu answers, %llu of them well, vouched again %llu times\n",
           (unsigned long long)count.asked, (unsigned long long)count.answered,
           (unsigned long long)count.fine, (unsigned long long)count.vouched);
    printf("%sok 1 - a siltd that asks for anything at all gets nowhere\n",
           failure != NULL ? "not " : "");
    if (failure != NULL)
        printf("# %s (%s)\n", failure, last_error());
    printf("1..1\n");
    return failure != NULL;
}
