/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/cgroup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/core/cgroup_table.h"
#include "wire/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_MAX = 4096,
    REMOVE_WAIT_MS = 2000, /* a dead process leaves its group within microseconds */
    REMOVE_STEP_US = 100,
    KILL_AGAIN = 20,       /* steps: a process left by then was not about to exit */
    CLEAR_WAIT_MS = 10000, /* hundreds of sandboxes at once */
    AGENTS_MIB = 256,      /* room for the page cache of logs; the kernel reclaims clean pages */
    AGENTS_SLOT_MIB = 1,   /* an idle silt-init uses a quarter of it, a busy one half */
    AGENTS_SHARE = 4, /* a quarter of the machine's memory: enough for an idle silt-init per MiB */
    FREEZE_WAIT_MS = 1000, /* an ordinary freeze takes less than one */
    FETCH_WAIT_MS = 10000, /* it may have files to close */
    TCP_SHARE = 4,
};

void silt_cgroup_name(uint32_t slot, char name[SILT_CGROUP_NAME_SIZE])
{
    (void)snprintf(name, SILT_CGROUP_NAME_SIZE, "s%u", slot);
}

uint64_t silt_cgroup_agents_max(const struct silt_cgroups *c)
{
    uint64_t slots = c->ids_count / SILT_SLOT_IDS;
    uint64_t max = (AGENTS_MIB + slots * AGENTS_SLOT_MIB) << 20;
    uint64_t share =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / AGENTS_SHARE;
    return max < share ? max : share;
}

/* Enough for a few hundred connections with full buffers, even in the smallest sandbox. */
static const uint64_t tcp_least = 64 << 20;

/* Half of the amount below which the kernel does not regulate sockets (the first number of
 * tcp_mem): above it, transfers of the whole machine slow down. */
static uint64_t find_tcp_most(void)
{
    struct silt_error ignored;
    silt_auto_free char *text = NULL;
    size_t len;
    uint64_t pages;
    if (silt_fd_read_file(AT_FDCWD, "/proc/sys/net/ipv4/tcp_mem", READ_MAX, &text, &len, &ignored)
        < 0)
        return UINT64_MAX;
    silt_slice rest = {text, len}, first;
    if (!silt_slice_split(&rest, '\t', &first)
        || silt_slice_to_u64(first, 0, UINT64_MAX >> 16, &pages, &ignored) < 0)
        return UINT64_MAX;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
}

uint64_t silt_cgroup_tcp_limit(const struct silt_cgroups *c, uint64_t memory_bytes)
{
    uint64_t share = memory_bytes / TCP_SHARE;
    share = share < tcp_least ? tcp_least : share;
    return share < c->tcp_most ? share : c->tcp_most;
}

int silt_cgroup_open_file(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                          int flags, int *ret_fd, struct silt_error *e)
{
    char path[NAME_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", at.group, file);
    int fd = openat(at.dir, path, flags | c->create_flag | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "open cgroup file %s", path);
    *ret_fd = fd;
    return 0;
}

int silt_cgroup_put(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                    const char *text, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    if (silt_cgroup_open_file(c, at, file, O_WRONLY, &fd, e) < 0)
        return -1;
    if (write(fd, text, strlen(text)) < 0)
        return silt_fail_errno(e, "write %s to cgroup file %s/%s", text, at.group, file);
    return 0;
}

static int read_some(int fd, char text[READ_MAX], silt_slice *ret)
{
    ssize_t n = read(fd, text, READ_MAX);
    if (n < 0)
        return -1;
    *ret = (silt_slice){text, (size_t)n};
    return 0;
}

static bool value_of(silt_slice text, const char *key, silt_slice *ret)
{
    silt_slice line;
    while (silt_slice_split(&text, '\n', &line)) {
        silt_slice word = {0};
        if (key == NULL)
            return silt_slice_split(&line, ' ', ret);
        if (silt_slice_split(&line, ' ', &word) && silt_slice_eq(word, silt_slice_of(key)))
            return silt_slice_split(&line, ' ', ret);
    }
    return false;
}

int silt_cgroup_get(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                    const char *key, uint64_t *ret, struct silt_error *e)
{
    char room[READ_MAX];
    silt_slice text, value;
    silt_auto_fd fd = -1;
    if (silt_cgroup_open_file(c, at, file, O_RDONLY, &fd, e) < 0)
        return -1;
    if (read_some(fd, room, &text) < 0)
        return silt_fail_errno(e, "read cgroup file %s/%s", at.group, file);
    if (!value_of(text, key, &value))
        return silt_fail(e, SILT_NOT_FOUND, "cgroup file %s/%s has no %s", at.group, file,
                         key != NULL ? key : "number");
    if (silt_slice_eq(value, SILT_LIT("max"))) {
        *ret = UINT64_MAX;
        return 0;
    }
    return silt_slice_to_u64(value, 0, UINT64_MAX, ret, e);
}

int silt_cgroup_put_number(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                           uint64_t number, struct silt_error *e)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return silt_cgroup_put(c, at, file, text, e);
}

/* The burst may never exceed the quota, at any moment. Kernels before 5.14 have no burst. */
int silt_cgroup_put_quota(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                          const char *burst_file, uint64_t quota_us, const char *period,
                          struct silt_error *e)
{
    char text[48];
    struct silt_error ignored;
    (void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)quota_us, period);
    if (silt_cgroup_put(c, at, file, text, e) < 0) {
        if (e->sys != EINVAL || silt_cgroup_put_number(c, at, burst_file, 0, &ignored) < 0
            || silt_cgroup_put(c, at, file, text, e) < 0)
            return -1;
    }
    (void)silt_cgroup_put_number(c, at, burst_file, quota_us, &ignored);
    return 0;
}

/* The pid may have been reused by now: the pidfd pins one process, and its ids show whether it is
 * ours. */
static void kill_one(const struct silt_cgroups *c, uint64_t pid)
{
    char path[32];
    struct stat st;
    silt_auto_fd pidfd = pidfd_open((pid_t)pid, 0);
    (void)snprintf(path, sizeof(path), "/proc/%llu", (unsigned long long)pid);
    if (pidfd < 0 || stat(path, &st) < 0)
        return;
    if (st.st_uid - c->ids_base >= c->ids_count && st.st_uid - c->ids_images >= SILT_SLOT_IDS)
        return;
    (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

void silt_cgroup_kill_listed(const struct silt_cgroups *c, struct silt_cgroup_at at,
                             const char *file)
{
    char path[NAME_MAX];
    struct silt_error e;
    silt_auto_free char *list = NULL;
    size_t len;
    (void)snprintf(path, sizeof(path), "%s/%s", at.group, file);
    if (silt_fd_read_file(at.dir, path, 1 << 20, &list, &len, &e) < 0)
        return;
    silt_slice rest = {list, len}, line;
    while (silt_slice_split(&rest, '\n', &line)) {
        uint64_t pid;
        if (silt_slice_to_u64(line, 1, INT32_MAX, &pid, &e) == 0)
            kill_one(c, pid);
    }
}

int silt_cgroup_each(int dir, const char *group, int (*each)(void *context, const char *name),
                     void *context)
{
    int fd = openat(dir, group, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        (void)close(fd);
        return -1;
    }
    int result = 0;
    for (struct dirent *it = readdir(d); it != NULL && result == 0; it = readdir(d))
        if (it->d_type == DT_DIR && it->d_name[0] != '.')
            result = each(context, it->d_name);
    int saved = errno;
    (void)closedir(d);
    errno = saved;
    return result;
}

int silt_cgroup_enter(int dir, const char *name)
{
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int silt_cgroups_open(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                      struct silt_error *e)
{
    struct statfs s;
    silt_auto_fd root = open(config->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || fstatfs(root, &s) < 0)
        return silt_fail_errno(e, "open cgroup directory %s", config->root);
    *c = (struct silt_cgroups){.ids_base = config->ids_base,
                               .ids_count = config->ids_count,
                               .ids_images = config->ids_images,
                               .tcp_most = find_tcp_most()};
    if (silt_slice_to_cstr(silt_slice_of(config->instance), c->instance, sizeof(c->instance), e)
        < 0)
        return -1;
    bool v2 = faccessat(root, "cgroup.controllers", F_OK, 0) == 0;
    c->version = v2 ? 2 : 1;
    c->table = v2 ? &silt_cgroup_v2 : &silt_cgroup_v1;
    if (v2 && (unsigned long)s.f_type != CGROUP2_SUPER_MAGIC)
        c->create_flag = O_CREAT;
    if (c->table->open(c, config, e) < 0)
        return silt_because(e, "open cgroups of instance %s", config->instance);
    return 0;
}

/* An instance's directory contains s<slot>, `agents`, `fetch`, and on v2 our own `priv`. */
static int sweep_sandbox(void *context, const char *name)
{
    const struct silt_cgroups *c = context;
    if (strcmp(name, "priv") == 0)
        return 0;
    c->table->kill(c, name);
    if (name[0] == 's')
        (void)c->table->rmdir(c, name);
    return 0;
}

static int sweep_rest(void *context, const char *name)
{
    const struct silt_cgroups *c = context;
    (void)c->table->rmdir(c, name);
    return 0;
}

static int count_sandbox(void *context, const char *name)
{
    unsigned *left = context;
    if (name[0] == 's')
        ++*left;
    return 0;
}

static unsigned sandboxes_left(const struct silt_cgroups *c)
{
    unsigned left = 0;
    for (int i = 0; i < c->ndirs; i++)
        (void)silt_cgroup_each(c->dirs[i], ".", count_sandbox, &left);
    return left;
}

/* v1: all silt-init processes are in one shared group. */
static bool agents_left(const struct silt_cgroups *c)
{
    char byte;
    silt_auto_fd fd = openat(c->dirs[0], "agents/cgroup.procs", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &byte, 1) > 0;
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = REMOVE_STEP_US * 1000L}, NULL);
}

int silt_cgroups_clear(struct silt_cgroups *c, struct silt_error *e)
{
    int64_t until = silt_clock_ms() + CLEAR_WAIT_MS;
    do {
        /* On v1, kill silt-init first: it would otherwise record the deaths of its children as
         * ordinary exits. */
        c->table->kill(c, "agents");
        for (int i = 0; i < c->ndirs; i++)
            (void)silt_cgroup_each(c->dirs[i], ".", sweep_sandbox, c);
        if (sandboxes_left(c) == 0 && !agents_left(c))
            return 0;
        for (int i = 0; i < 50; i++)
            nap();
    } while (silt_clock_ms() < until);
    return silt_fail(e, SILT_TIMEOUT, "%u cgroups of sandboxes are still in use",
                     sandboxes_left(c));
}

int silt_cgroups_remove(struct silt_cgroups *c, struct silt_error *e)
{
    struct silt_error ignored;
    if (silt_cgroups_clear(c, e) < 0)
        return -1;
    if (c->version == 2) /* we are in it ourselves */
        (void)silt_cgroup_put(c, silt_cgroup_at(c->tops[0], "."), "cgroup.procs", "0", &ignored);
    int64_t until = silt_clock_ms() + REMOVE_WAIT_MS;
    for (int i = 0; i < c->ndirs; i++) {
        while (unlinkat(c->tops[i], c->instance, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            if (silt_clock_ms() > until)
                return silt_fail_errno(e, "remove cgroup %s", c->instance);
            (void)silt_cgroup_each(c->dirs[i], ".", sweep_rest, c);
            nap();
        }
    }
    return 0;
}

int silt_cgroup_make(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                     struct silt_error *e)
{
    int made = c->table->make(c, slot, e);
    if (made < 0 && e->sys == EEXIST) { /* left by a silt-priv that was killed */
        silt_cgroup_kill(c, slot);
        if (silt_cgroup_remove(c, slot, e) < 0)
            return -1;
        made = c->table->make(c, slot, e);
    }
    if (made < 0)
        return -1;
    return c->table->limit(c, slot, l, e);
}

int silt_cgroup_limit(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                      struct silt_error *e)
{
    return c->table->limit(c, slot, l, e);
}

int silt_cgroup_birth_open(const struct silt_cgroups *c, uint32_t slot,
                           struct silt_cgroup_birth *ret, struct silt_error *e)
{
    *ret = (struct silt_cgroup_birth){.into = -1, .oom = -1, .peak = -1, .pids = -1};
    if (c->table->birth(c, slot, ret, e) == 0)
        return 0;
    silt_cgroup_birth_close(ret);
    return -1;
}

void silt_cgroup_birth_close(struct silt_cgroup_birth *b)
{
    silt_close_fd(&b->into);
    silt_close_fd(&b->oom);
    silt_close_fd(&b->peak);
    silt_close_fd(&b->pids);
    for (int i = 0; i < b->njoins; i++)
        silt_close_fd(&b->joins[i]);
    b->njoins = 0;
}

/* Numbers are not stored: the first free ones are used. */
int silt_cgroup_handles(const struct silt_cgroups *c, uint32_t slot, uint32_t count, int *ret_fds,
                        int *ret_nfds, struct silt_error *e)
{
    int nfds = 0;
    uint32_t made = 0;
    for (uint32_t k = 0; made < count; k++) {
        if (k == SILT_HANDLES_MAX) {
            (void)silt_fail(e, SILT_LIMIT, "sandbox has %d handles already", SILT_HANDLES_MAX);
            break;
        }
        if (c->table->handle(c, slot, k, ret_fds, &nfds, e) == 0)
            made++;
        else if (e->sys != EEXIST)
            break;
    }
    if (made == count) {
        *ret_nfds = nfds;
        return 0;
    }
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&ret_fds[i]);
    return -1;
}

int silt_cgroup_context(const struct silt_cgroups *c, uint32_t slot, uint32_t *ret_k, int *ret_fds,
                        int *ret_nfds, struct silt_error *e)
{
    *ret_nfds = 0;
    for (uint32_t i = 0; i < SILT_CGROUP_CONTEXTS_MAX; i++) {
        *ret_k = SILT_HANDLES_MAX + i;
        if (c->table->handle(c, slot, *ret_k, ret_fds, ret_nfds, e) == 0)
            return 0;
        if (e->sys != EEXIST)
            return -1;
    }
    return silt_fail(e, SILT_LIMIT, "sandbox has %d contexts already", SILT_CGROUP_CONTEXTS_MAX);
}

int silt_cgroup_context_join(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fd,
                             struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    if (c->version == 1) {
        (void)snprintf(name, sizeof(name), "s%u/h%u", slot, k);
        return silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[c->ndirs - 1], name), "tasks",
                                     O_WRONLY, ret_fd, e);
    }
    (void)snprintf(name, sizeof(name), "s%u/guest/h%u", slot, k);
    *ret_fd = openat(c->dirs[0], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? silt_fail_errno(e, "open handle %s", name) : 0;
}

void silt_cgroup_context_remove(const struct silt_cgroups *c, uint32_t slot, uint32_t k)
{
    c->table->drop(c, slot, k);
}

int silt_cgroup_stat(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                     struct silt_error *e)
{
    return c->table->stat(c, slot, ret, e);
}

int silt_cgroup_thaw(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e)
{
    return c->table->freeze(c, slot, false, e);
}

/* A process in an uninterruptible wait freezes only after it, and it may hold up the others for
 * ever: a sandbox is frozen as a whole or not at all. */
int silt_cgroup_freeze(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e)
{
    struct silt_error ignored;
    int64_t until = silt_clock_ms() + FREEZE_WAIT_MS;
    bool frozen = false;
    if (c->table->freeze(c, slot, true, e) < 0)
        return -1;
    while (c->table->is_frozen(c, slot, &frozen, e) == 0 && !frozen && silt_clock_ms() < until)
        nap();
    if (frozen)
        return 0;
    (void)silt_cgroup_thaw(c, slot, &ignored);
    return silt_fail(e, SILT_TIMEOUT, "its processes did not freeze within %d ms", FREEZE_WAIT_MS);
}

void silt_cgroup_kill(const struct silt_cgroups *c, uint32_t slot)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    c->table->kill(c, name);
}

int silt_cgroup_tcp(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_tcp *ret,
                    struct silt_error *e)
{
    return c->table->tcp(c, slot, ret, e);
}

void silt_cgroup_kill_guest(const struct silt_cgroups *c, uint32_t slot)
{
    char name[SILT_CGROUP_NAME_SIZE];
    (void)snprintf(name, sizeof(name), c->version == 1 ? "s%u" : "s%u/guest", slot);
    c->table->kill(c, name);
}

struct each_slot {
    void (*each)(void *context, uint32_t slot);
    void *context;
};

static int on_group(void *context, const char *name)
{
    const struct each_slot *v = context;
    struct silt_error ignored;
    uint64_t slot;
    if (name[0] == 's'
        && silt_slice_to_u64(silt_slice_of(name + 1), 0, UINT32_MAX, &slot, &ignored) == 0)
        v->each(v->context, (uint32_t)slot);
    return 0;
}

void silt_cgroups_each_slot(const struct silt_cgroups *c,
                            void (*each)(void *context, uint32_t slot), void *context)
{
    struct each_slot v = {.each = each, .context = context};
    (void)silt_cgroup_each(c->dirs[0], ".", on_group, &v);
}

/* A successful rmdir proves that the group was empty: the kernel checks it. */
static int remove_group(const struct silt_cgroups *c, const char *name, int wait_ms,
                        struct silt_error *e)
{
    int64_t until = silt_clock_ms() + wait_ms;
    for (int i = 1; c->table->rmdir(c, name) < 0; i++) {
        if (errno != EBUSY)
            return silt_fail_errno(e, "remove cgroup %s", name);
        if (silt_clock_ms() > until)
            return silt_fail(e, SILT_TIMEOUT, "cgroup %s still has processes", name);
        if (i % KILL_AGAIN == 0)
            c->table->kill(c, name);
        nap();
    }
    return 0;
}

int silt_cgroup_remove(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    return remove_group(c, name, REMOVE_WAIT_MS, e);
}

static void fetch_name(uint32_t number, char name[SILT_CGROUP_NAME_SIZE])
{
    (void)snprintf(name, SILT_CGROUP_NAME_SIZE, "fetch/h%u", number);
}

void silt_cgroup_entry_close(struct silt_cgroup_entry *x)
{
    silt_close_fd(&x->into);
    for (int i = 0; i < x->count; i++)
        silt_close_fd(&x->tasks[i]);
    x->count = 0;
}

int silt_cgroup_fetch(const struct silt_cgroups *c, uint32_t number, struct silt_cgroup_entry *ret,
                      struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    fetch_name(number, name);
    *ret = SILT_CGROUP_NO_ENTRY;
    if (c->table->fetch(c, name, ret, e) == 0)
        return 0;
    silt_cgroup_entry_close(ret);
    return silt_because(e, "open cgroup %s", name);
}

int silt_cgroup_fetch_end(const struct silt_cgroups *c, uint32_t number, struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    fetch_name(number, name);
    c->table->kill(c, name);
    return remove_group(c, name, FETCH_WAIT_MS, e);
}

/* The kernel applies the limit to forks, not to processes that join by themselves. */
int silt_cgroup_check_fetches(const struct silt_cgroups *c, int pids, struct silt_error *e)
{
    struct silt_error ignored; /* the controller is not available everywhere */
    uint64_t count;
    if (silt_cgroup_get(c, silt_cgroup_at(pids, "fetch"), "pids.current", NULL, &count, &ignored)
            == 0
        && count >= SILT_CGROUP_FETCH_PIDS)
        return silt_fail(e, SILT_LIMIT, "%d silt-fetches run already", SILT_CGROUP_FETCH_PIDS);
    return 0;
}
