/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes begin, sleep and end, and what is left of them. */
#include "engine_tests.h"
#include "wire/agent.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETTLE_MS = 5000, ROUNDS = 150 };

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static int count_entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    if (d == NULL)
        return -1;
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d))
        n += it->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

/* Directories of sandboxes in every hierarchy of control groups. */
static int count_groups(const struct world *w)
{
    static const char *const names[] = {"memory", "pids", "cpu", "cpuacct", "freezer"};
    char path[256];
    int n = 0;
    for (size_t i = 0; i < SILT_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/%s", w->cgroup, names[i], w->instance);
        DIR *d = opendir(path);
        for (struct dirent *it = d ? readdir(d) : NULL; it != NULL; it = readdir(d))
            n += it->d_name[0] == 's';
        if (d != NULL)
            (void)closedir(d);
    }
    return n;
}

static int count_volumes(const struct world *w, const char *directory)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/state/pool/%s", w->directory, directory);
    return count_entries(path);
}

/* Descriptors of all processes of our silt-priv: its own process group is ours, so by parent. */
static int count_descriptors(const struct world *w)
{
    char path[300];
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *it = d ? readdir(d) : NULL; it != NULL; it = readdir(d)) {
        int parent = 0;
        struct silt_error e;
        char *text = NULL;
        size_t len;
        if (it->d_name[0] < '0' || it->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%s/stat", it->d_name);
        if (silt_fd_read_file(-1, path, 4096, &text, &len, &e) < 0)
            continue;
        const char *paren = strrchr(text, ')');
        if (paren != NULL && sscanf(paren, ") %*c %d", &parent) == 1
            && (parent == w->priv || strtol(it->d_name, NULL, 10) == w->priv)) {
            (void)snprintf(path, sizeof(path), "/proc/%s/fd", it->d_name);
            n += count_entries(path);
        }
        free(text);
    }
    if (d != NULL)
        (void)closedir(d);
    return n;
}

/* The janitor works behind our back: waits until the number is what it should be. */
static bool settles(int (*count)(const struct world *), const struct world *w, int wanted)
{
    for (int waited = 0; waited < SETTLE_MS; waited += 10) {
        if (count(w) == wanted)
            return true;
        (void)poll(NULL, 0, 10);
    }
    return false;
}

static int count_trash(const struct world *w)
{
    return count_volumes(w, "trash");
}

static bool sleeps_and_wakes(struct world *w)
{
    struct box b;
    for (int i = 0; i < 2; i++) {
        uint32_t flags = i == 0 ? 0 : SILT_CREATE_EPHEMERAL;
        CHECK(box_create(w, 5, SILT_CREATE_FRESH | flags, &b));
        CHECK_SAYS(&b, "write /tmp/kept words", "ok");
        CHECK(tell(w, SILT_PRIV_STOP, 5));
        CHECK(box_is_dead(&b));
        CHECK(count_groups(w) == 0);
        box_close(&b);
        CHECK(box_create(w, 5, flags, &b));
        CHECK_SAYS(&b, "read /tmp/kept", "words");
        CHECK(tell(w, SILT_PRIV_DESTROY, 5));
        box_close(&b);
    }
    return true;
}

static bool wakes_with_a_full_disk(struct world *w)
{
    struct silt_priv_request q = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct box b;
    q.body.create.limits.disk_bytes = 10 << 20;
    CHECK(box_create_by(w, &q, &b));
    CHECK(has(box_say(&b, "fill /big 60"), "errno 122"));
    CHECK(has(box_say(&b, "fill /small 60"), "errno 122"));
    CHECK(tell(w, SILT_PRIV_STOP, 5));
    box_close(&b);
    q.body.create.flags = 0;
    CHECK(box_create_by(w, &q, &b));
    CHECK(has(box_say(&b, "fill /more 60"), "0 errno 122"));
    CHECK_SAYS(&b, "remove /big", "ok");
    CHECK_SAYS(&b, "fill /more 2", "2 errno 0");
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

static bool needs_files_to_wake(struct world *w)
{
    struct box b;
    CHECK(!box_create(w, 6, 0, &b));
    CHECK(last_code() == SILT_NOT_FOUND);
    CHECK(count_groups(w) == 0);
    return true;
}

static bool starts_afresh(struct world *w)
{
    struct box a, b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &a));
    CHECK_SAYS(&a, "write /tmp/old x", "ok");
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b)); /* nobody told us that the first has ended */
    CHECK(box_is_dead(&a));
    CHECK_SAYS(&b, "stat /tmp/old", "errno 2");
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&a);
    box_close(&b);
    return true;
}

static bool ends_what_is_not_there(struct world *w)
{
    CHECK(tell(w, SILT_PRIV_STOP, 200));
    CHECK(tell(w, SILT_PRIV_DESTROY, 200));
    CHECK(tell(w, SILT_PRIV_STAT, 200));
    return true;
}

static bool ends_what_is_frozen(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    CHECK(strtol(box_say(&b, "sleeper 2"), NULL, 10) > 1);
    CHECK_SAYS(&b, "freeze 2", "ok");
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    CHECK(box_is_dead(&b) && count_groups(w) == 0);
    box_close(&b);
    return true;
}

static bool is_claimed(struct world *w)
{
    struct silt_priv_request q = {
        .op = SILT_PRIV_CLAIM,
        .slot = 5,
        .body.claim = {.limits = ordinary_limits, .hostname = "other-name"}};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    static const uint64_t sizes[] = {512 << 20, 64 << 20, 128 << 20};
    for (size_t i = 0; i < SILT_COUNT(sizes); i++) { /* up, down, up */
        q.body.claim.limits.memory_bytes = sizes[i];
        q.body.claim.limits.pids = 10 + (uint32_t)i;
        ask(w, &q, NULL, 0, &a, &fds);
        CHECK(a.ok);
    }
    CHECK_SAYS(&b, "name", "other-name");
    CHECK_SAYS(&b, "forks 50", "exit 12");
    CHECK_SAYS(&b, "eat 200", "signal 9");
    CHECK(tell(w, SILT_PRIV_STOP, 5));
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_GONE);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

static bool gets_more_handles(struct world *w)
{
    struct silt_priv_request q = {.op = SILT_PRIV_HANDLES, .slot = 5, .body.count = 10};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    for (int i = 0; i < (SILT_HANDLES_MAX - 4) / 10; i++) { /* 4 at birth */
        ask(w, &q, NULL, 0, &a, &fds);
        CHECK(a.ok && fds.nfds == 20);
        silt_parcel_close(&fds);
    }
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_LIMIT && fds.nfds == 0);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    CHECK(count_groups(w) == 0);
    box_close(&b);
    return true;
}

static bool spools_count(struct world *w)
{
    struct silt_priv_request q = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct silt_priv_request spool = {.op = SILT_PRIV_SPOOL, .slot = 5};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    static char mib[1 << 20];
    ssize_t n = 0, written = 0;
    q.body.create.limits.disk_bytes = 10 << 20;
    CHECK(box_create_by(w, &q, &b));
    ask(w, &spool, NULL, 0, &a, &fds);
    CHECK(a.ok && fds.nfds == 1);
    memset(mib, 'y', sizeof(mib));
    while (written < 50 << 20 && (n = write(fds.fds[0], mib, sizeof(mib))) > 0)
        written += n;
    CHECK(n < 0 && errno == EDQUOT && written <= 10 << 20);
    silt_parcel_close(&fds);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

static enum silt_code ask_log(struct world *w, uint64_t number, uint32_t fresh, int *ret_fd)
{
    struct silt_priv_request q = {
        .op = SILT_PRIV_LOG, .slot = 5, .body.log = {.number = number, .fresh = fresh}};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    ask(w, &q, NULL, 0, &a, &fds);
    *ret_fd = a.ok && fds.nfds == 1 ? silt_take_fd(&fds.fds[0]) : -1;
    silt_parcel_close(&fds);
    return a.ok ? SILT_OK : a.body.error.code;
}

static bool unlogs(struct world *w, uint64_t number)
{
    struct silt_priv_request q = {.op = SILT_PRIV_UNLOG, .slot = 5, .body.log = {.number = number}};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    ask(w, &q, NULL, 0, &a, &fds);
    return a.ok && fds.nfds == 0;
}

static bool logs_last(struct world *w)
{
    struct silt_priv_request create = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH);
    char text[8] = "";
    struct box b;
    int fd, again;
    create.body.create.limits.disk_bytes = 10 << 20;
    CHECK(box_create_by(w, &create, &b));
    CHECK(ask_log(w, UINT64_MAX, 0, &fd) == SILT_NOT_FOUND);
    CHECK(ask_log(w, UINT64_MAX, 1, &fd) == SILT_OK);
    CHECK(ask_log(w, UINT64_MAX, 1, &again) == SILT_CONFLICT);
    CHECK(pwrite(fd, "hello", 5, 0) == 5);
    CHECK(ask_log(w, UINT64_MAX, 0, &again) == SILT_OK);
    CHECK(pread(again, text, sizeof(text), 0) == 5 && strcmp(text, "hello") == 0);
    (void)close(again);
    CHECK(tell(w, SILT_PRIV_STOP, 5));
    CHECK(ask_log(w, UINT64_MAX, 0, &again) == SILT_OK);
    CHECK(pread(again, text, sizeof(text), 0) == 5);
    (void)close(again);
    CHECK(unlogs(w, UINT64_MAX) && unlogs(w, UINT64_MAX) && unlogs(w, 7));
    CHECK(ask_log(w, UINT64_MAX, 0, &again) == SILT_NOT_FOUND);
    CHECK(ask_log(w, 8, 1, &again) == SILT_OK);
    (void)close(again);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    CHECK(unlogs(w, 8));
    CHECK(ask_log(w, 8, 0, &again) == SILT_NOT_FOUND);
    (void)close(fd);
    box_close(&b);
    return true;
}

static bool logs_count(struct world *w)
{
    struct silt_priv_request create = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH);
    static char mib[1 << 20];
    ssize_t n = 0, written = 0;
    struct box b;
    int fd;
    create.body.create.limits.disk_bytes = 10 << 20;
    CHECK(box_create_by(w, &create, &b));
    CHECK(ask_log(w, 1, 1, &fd) == SILT_OK);
    memset(mib, 'y', sizeof(mib));
    while (written < 50 << 20 && (n = write(fd, mib, sizeof(mib))) > 0)
        written += n;
    CHECK(n < 0 && errno == EDQUOT && written <= 10 << 20);
    (void)close(fd);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

static bool refuses_nonsense(struct world *w)
{
    struct silt_priv_request good = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH), q;
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    q = (struct silt_priv_request){.op = 99};
    ask(w, &q, NULL, 0, &a, &fds);
    CHECK(!a.ok && a.body.error.code == SILT_PROTOCOL);
    q = good;
    q.slot = SLOTS;
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_PROTOCOL);
    ask(w, &good, NULL, 0, &a, &fds); /* without a channel */
    CHECK(!a.ok && a.body.error.code == SILT_PROTOCOL);
    q = good;
    memset(q.body.create.hostname, 'x', SILT_HOSTNAME_SIZE);
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_INVALID);
    q = good;
    memcpy(q.body.create.hostname, "a/b", 4);
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_INVALID);
    q = good;
    q.body.create.flags |= 0x80;
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_PROTOCOL);
    q = good;
    q.body.create.handles = 1000;
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_INVALID);
    q = good;
    q.body.create.limits.memory_bytes = 0;
    CHECK(!box_create_by(w, &q, &b) && last_code() == SILT_INVALID);
    CHECK(count_groups(w) == 0 && count_volumes(w, "s") == 0);
    return true;
}

static bool survives_a_crash_of_silt_priv(struct world *w)
{
    struct silt_priv_request ask_stat = {.op = SILT_PRIV_STAT, .slot = 5};
    struct silt_priv_answer a;
    struct silt_parcel fds;
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    world_crash_priv(w);
    CHECK(has(box_say(&b, "ping"), "pong"));
    world_start_priv(w, false);
    CHECK(has(box_say(&b, "ping"), "pong"));
    ask(w, &ask_stat, NULL, 0, &a, &fds);
    CHECK(a.ok && a.body.stat.running == 1);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    CHECK(box_is_dead(&b) && count_groups(w) == 0);
    box_close(&b);
    return true;
}

/* A worker is killed in the middle of creates: whoever waits is told, and the next one works. */
static bool answers_for_dead_workers(struct world *w)
{
    struct box b;
    int told = 0;
    for (int i = 0; i < 8; i++) {
        pid_t killer = fork();
        if (killer == 0) {
            (void)usleep((useconds_t)(getpid() * 131 % 4000)); /* at another moment each time */
            world_kill_workers(w);
            _exit(0);
        }
        bool created = box_create(w, 5, SILT_CREATE_FRESH, &b);
        /* A worker that dies in the very instant of receiving leaves siltd to its deadline. */
        CHECK(created || last_code() == SILT_INTERRUPTED || last_code() == SILT_TIMEOUT);
        told += !created;
        if (created)
            box_close(&b);
        (void)waitpid(killer, NULL, 0);
    }
    printf("# %d of 8 creates were interrupted\n", told);
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    CHECK(has(box_say(&b, "ping"), "pong"));
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    CHECK(count_groups(w) == 0 && count_volumes(w, "s") == 0);
    box_close(&b);
    return true;
}

static bool begins_fresh(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    CHECK(strtol(box_say(&b, "sleeper 1"), NULL, 10) > 1);
    world_crash_priv(w);
    world_start_priv(w, true);
    CHECK(tell(w, SILT_PRIV_STAT, 5));
    CHECK(box_is_dead(&b) && count_groups(w) == 0);
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

static bool serves_the_next_siltd(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 5, SILT_CREATE_FRESH, &b));
    world_new_siltd(w);
    CHECK(tell(w, SILT_PRIV_STAT, 5));
    CHECK(has(box_say(&b, "ping"), "pong"));
    CHECK(tell(w, SILT_PRIV_DESTROY, 5));
    box_close(&b);
    return true;
}

/* siltd asks for a sandbox and dies at some moment before it reads the answer; the next one tidies
 * up. */
static bool ends_what_nobody_heard_of(struct world *w)
{
    struct silt_priv_request q = create_request(5, IMAGE_PLAIN, SILT_CREATE_FRESH);
    struct silt_error e;
    char byte;
    for (int i = 0; i < 20; i++) {
        int pair[2];
        CHECK(silt_fd_pair(SOCK_SEQPACKET, pair, &e) == 0);
        struct silt_parcel out = {.data = &q, .len = sizeof(q), .fds = {pair[1]}, .nfds = 1};
        CHECK(silt_fd_send(w->siltd, &out, &e) == 0);
        (void)close(pair[1]);
        (void)poll(NULL, 0, i / 4);
        world_new_siltd(w);
        CHECK(tell(w, SILT_PRIV_DESTROY, 5));
        CHECK(count_groups(w) == 0);
        CHECK(recv(pair[0], &byte, 1, 0) == 0); /* the puppet is gone, or has never been */
        (void)close(pair[0]);
    }
    return true;
}

static bool leaves_nothing(struct world *w)
{
    struct box b;
    CHECK(box_create(w, 7, SILT_CREATE_FRESH, &b));
    CHECK(tell(w, SILT_PRIV_DESTROY, 7));
    box_close(&b);
    (void)poll(NULL, 0, 2500); /* the janitor keeps roots for two seconds */
    int before = count_descriptors(w);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CHECK(box_create(w, i % 50, SILT_CREATE_FRESH, &b));
        if (i % 3 == 0)
            CHECK_SAYS(&b, "write /tmp/x y", "ok");
        CHECK(tell(w, SILT_PRIV_DESTROY, i % 50));
        box_close(&b);
    }
    CHECK(count_groups(w) == 0);
    CHECK(count_volumes(w, "s") == 0);
    CHECK(settles(count_trash, w, 0));
    CHECK(settles(count_descriptors, w, before));
    return true;
}

const struct test life_tests[] = {
    {"a stopped sandbox wakes with its files", sleeps_and_wakes, NULL},
    {"a sandbox whose disk is full wakes and can be emptied", wakes_with_a_full_disk, NULL},
    {"a sandbox without files cannot wake", needs_files_to_wake, NULL},
    {"a fresh start ends and forgets what was in its place", starts_afresh, NULL},
    {"ending what is not there is fine", ends_what_is_not_there, NULL},
    {"a frozen process does not stop the end", ends_what_is_frozen, NULL},
    {"a ready sandbox gets its name and limits when it is claimed", is_claimed, NULL},
    {"more handles can be had, but not without end", gets_more_handles, NULL},
    {"spools count against the sandbox's disk", spools_count, NULL},
    {"logs outlive a stop and go with the sandbox", logs_last, NULL},
    {"logs count against the sandbox's disk", logs_count, NULL},
    {"nonsense is refused and leaves nothing", refuses_nonsense, NULL},
    {"a crash of silt-priv harms no sandbox and it is found again", survives_a_crash_of_silt_priv,
     NULL},
    {"whoever waits for a worker that dies is told so", answers_for_dead_workers, NULL},
    {"a fresh instance ends what an earlier one left", begins_fresh, NULL},
    {"the next siltd is served", serves_the_next_siltd, NULL},
    {"a sandbox whose siltd is gone before it runs can be ended by the next",
     ends_what_nobody_heard_of, NULL},
    {"many rounds leave no group, file or descriptor", leaves_nothing, NULL},
    {NULL, NULL, NULL},
};
