/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v1: cgroup version 1, also in the hybrid layout. Controllers mounted together
 * (cpu,cpuacct) are one directory. */
#include "base/fd.h"
#include "base/own.h"
#include "engine/core/cgroup_table.h"
#include "base/test_switch.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MEMORY, PIDS, CPU, CPUACCT, FREEZER, CONTROLLERS };
enum { PERIOD_US = 100000, QUOTA_LEAST_US = 1000 };

static const char *const names[CONTROLLERS] = {
    [MEMORY] = "memory",   [PIDS] = "pids",       [CPU] = "cpu",
    [CPUACCT] = "cpuacct", [FREEZER] = "freezer",
};

/* dirs[] lists each hierarchy once; the freezer is always the last. */
static int freezer_of(const struct silt_cgroups *c)
{
    return c->dirs[c->ndirs - 1];
}

static int cpuacct_of(const struct silt_cgroups *c)
{
    return c->ndirs == CONTROLLERS ? c->dirs[CPUACCT] : c->dirs[CPU];
}

static bool same_directory(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_top(const char *root, const char *controller, int *ret_fd, struct silt_error *e)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", root, controller) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "cgroup directory name too long");
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open %s (is the controller mounted?)", path);
    *ret_fd = fd;
    return 0;
}

static int open_own(struct silt_cgroups *c, int i, struct silt_error *e)
{
    c->dirs[i] = silt_cgroup_enter(c->tops[i], c->instance);
    if (c->dirs[i] < 0)
        return silt_fail_errno(e, "make cgroup %s", c->instance);
    silt_auto_fd agents = silt_cgroup_enter(c->dirs[i], "agents");
    silt_auto_fd fetch = silt_cgroup_enter(c->dirs[i], "fetch");
    if (agents < 0 || fetch < 0)
        return silt_fail_errno(e, "make cgroups agents and fetch");
    c->agents[i] = openat(agents, "tasks", O_WRONLY | O_CLOEXEC);
    if (c->agents[i] < 0)
        return silt_fail_errno(e, "open cgroup agents");
    return 0;
}

/* The kernel requires memory <= memory + swap at all times, so to shrink, set the first one first,
 * and to grow, the second. The second exists only if swap is accounted. */
static int limit_memory(const struct silt_cgroups *c, const char *name, uint64_t bytes,
                        struct silt_error *e)
{
    static const char both[] = "memory.memsw.limit_in_bytes";
    static const char alone[] = "memory.limit_in_bytes";
    struct silt_error ignored;
    int memory = c->dirs[MEMORY];
    if (silt_cgroup_put_number(c, silt_cgroup_at(memory, name), alone, bytes, e) == 0)
        return silt_cgroup_put_number(c, silt_cgroup_at(memory, name), both, bytes, e) < 0
                       && e->sys != ENOENT
                   ? -1
                   : 0;
    if (e->sys != EINVAL)
        return -1;
    (void)silt_cgroup_put_number(c, silt_cgroup_at(memory, name), both, bytes, &ignored);
    return silt_cgroup_put_number(c, silt_cgroup_at(memory, name), alone, bytes, e);
}

/* At the limit the kernel kills the largest silt-init, the one that grew: that sandbox has
 * crashed. */
static int limit_agents(const struct silt_cgroups *c, struct silt_error *e)
{
    return silt_without("agents_memory") ? 0
                                         : limit_memory(c, "agents", silt_cgroup_agents_max(c), e);
}

static int open_all(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                    struct silt_error *e)
{
    for (int i = 0; i < CONTROLLERS; i++) {
        silt_auto_fd top = -1;
        if (open_top(config->root, names[i], &top, e) < 0)
            return -1;
        if (i == CPUACCT && same_directory(top, c->tops[CPU]))
            continue;
        c->tops[c->ndirs] = silt_take_fd(&top);
        if (open_own(c, c->ndirs, e) < 0)
            return -1;
        c->ndirs++;
    }
    if (silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[PIDS], "fetch"), "pids.max",
                               SILT_CGROUP_FETCH_PIDS, e)
        < 0)
        return -1;
    return limit_memory(c, "fetch", (uint64_t)SILT_CGROUP_FETCH_MIB << 20, e) < 0
               ? -1
               : limit_agents(c, e);
}

/* Only in test builds (base/test_switch.h). */
static int give_away(const struct silt_cgroups *c, uint32_t slot, const char *name,
                     struct silt_error *e)
{
    char path[NAME_MAX];
    uid_t owner = c->ids_base + slot * SILT_SLOT_IDS;
    (void)snprintf(path, sizeof(path), "%s/notify_on_release", name);
    if (fchownat(c->dirs[MEMORY], path, owner, owner, 0) < 0)
        return silt_fail_errno(e, "give away %s", path);
    return 0;
}

static int make(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    for (int i = 0; i < c->ndirs; i++)
        if (mkdirat(c->dirs[i], name, 0755) < 0)
            return silt_fail_errno(e, "make cgroup %s", name);
    if (silt_without("cgroup_ro"))
        return give_away(c, slot, name, e);
    return 0;
}

/* v1 accounts TCP socket memory separately, and only if it has its own limit. This limit alone is
 * not enough: a socket is charged when it is accepted, and the first packet in an empty queue is
 * accepted beyond the limit (tcp_data_queue). It slows down a guest with few connections at half of
 * what it may use, so that the watcher (priv/tcp_memory.h), which resets connections and kills
 * processes, has to deal only with guests that have hundreds. */
static int limit_tcp(const struct silt_cgroups *c, const char *name, uint64_t bytes,
                     struct silt_error *e)
{
    uint64_t slow = silt_cgroup_tcp_limit(c, bytes) / 2;
    if (silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[MEMORY], name),
                               "memory.kmem.tcp.limit_in_bytes", slow, e)
        == 0)
        return 0;
    return e->sys == ENOENT ? 0 : -1; /* a kernel without it */
}

static int limit_cpu(const struct silt_cgroups *c, const char *name, uint32_t milli,
                     struct silt_error *e)
{
    struct silt_cgroup_at at = silt_cgroup_at(c->dirs[CPU], name);
    uint64_t quota = (uint64_t)milli * (PERIOD_US / 1000);
    struct silt_error ignored;
    if (milli == 0) {
        (void)silt_cgroup_put_number(c, at, "cpu.cfs_burst_us", 0, &ignored);
        return silt_cgroup_put(c, at, "cpu.cfs_quota_us", "-1", e);
    }
    return silt_cgroup_put_quota(c, at, "cpu.cfs_quota_us", "cpu.cfs_burst_us",
                                 quota < QUOTA_LEAST_US ? QUOTA_LEAST_US : quota, "", e);
}

static int tcp_v1(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_tcp *ret,
                  struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    uint64_t memory;
    silt_cgroup_name(slot, name);
    if (silt_cgroup_get(c, silt_cgroup_at(c->dirs[MEMORY], name), "memory.limit_in_bytes", NULL,
                        &memory, e)
        < 0)
        return -1;
    ret->limit = silt_cgroup_tcp_limit(c, memory);
    ret->charged = 0;
    return silt_cgroup_get(c, silt_cgroup_at(c->dirs[MEMORY], name),
                           "memory.kmem.tcp.usage_in_bytes", NULL, &ret->charged, e)
                       < 0
                   && e->sys != ENOENT
               ? -1
               : 0;
}

static int limit(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                 struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    if (!silt_without("memory_limit")
        && (limit_memory(c, name, l->memory_bytes, e) < 0
            || limit_tcp(c, name, l->memory_bytes, e) < 0))
        return -1;
    if (!silt_without("pids_limit")
        && silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[PIDS], name), "pids.max", l->pids, e)
               < 0)
        return -1;
    return silt_without("cpu_limit") ? 0 : limit_cpu(c, name, l->cpu_milli, e);
}

static int birth(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_birth *ret,
                 struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    for (int i = 0; i < c->ndirs; i++) {
        if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[i], name), "tasks", O_WRONLY,
                                  &ret->joins[i], e)
            < 0)
            return -1;
        ret->njoins++;
    }
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[MEMORY], name), "memory.oom_control",
                              O_RDONLY, &ret->oom, e)
        < 0)
        return -1;
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[MEMORY], name), "memory.max_usage_in_bytes",
                              O_RDONLY, &ret->peak, e)
        < 0)
        return -1;
    return silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[PIDS], name), "pids.events", O_RDONLY,
                                 &ret->pids, e);
}

static int open_as(const struct silt_cgroups *c, struct silt_cgroup_at at, uid_t owner, int *ret_fd,
                   struct silt_error *e)
{
    if (syscall(SYS_setresuid, -1, owner, -1)
        < 0) /* the glibc wrapper would synchronize all threads, and there is one */
        return silt_fail_errno(e, "act as user %u", owner);
    int done = silt_cgroup_open_file(c, at, "tasks", O_RDWR, ret_fd, e);
    if (syscall(SYS_setresuid, -1, 0, -1) < 0)
        abort(); /* never continue with the wrong effective uid */
    return done;
}

/* The kernel checks the credentials of whoever *opened* this file when a process is moved into the
 * group, and the descriptor passes through siltd: opened by root, it could freeze any process of
 * the machine. Opened by the sandbox's root, it accepts only that user's processes. The file stays
 * the sandbox's: silt-init opens it again as another of its users, whose processes it then takes.
 */
static int open_tasks(const struct silt_cgroups *c, struct silt_cgroup_at at, uint32_t slot,
                      int *ret_fd, struct silt_error *e)
{
    char path[NAME_MAX];
    uid_t owner = c->ids_base + slot * SILT_SLOT_IDS;
    (void)snprintf(path, sizeof(path), "%s/tasks", at.group);
    if (fchownat(at.dir, path, owner, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "lend %s", path);
    return open_as(c, at, owner, ret_fd, e);
}

static int handle(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fds, int *nfds,
                  struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_auto_fd tasks = -1, state = -1;
    (void)snprintf(name, sizeof(name), "s%u/h%u", slot, k);
    if (mkdirat(freezer_of(c), name, 0755) < 0)
        return silt_fail_errno(e, "make handle %s", name);
    if (open_tasks(c, silt_cgroup_at(freezer_of(c), name), slot, &tasks, e) < 0)
        return -1;
    if (silt_cgroup_open_file(c, silt_cgroup_at(freezer_of(c), name), "freezer.state", O_RDWR,
                              &state, e)
        < 0)
        return -1;
    ret_fds[(*nfds)++] = silt_take_fd(&tasks);
    ret_fds[(*nfds)++] = silt_take_fd(&state);
    return 0;
}

static void drop(const struct silt_cgroups *c, uint32_t slot, uint32_t k)
{
    char path[NAME_MAX];
    (void)snprintf(path, sizeof(path), "s%u/h%u", slot, k);
    (void)unlinkat(freezer_of(c), path, AT_REMOVEDIR);
}

static int stat_v1(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                   struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    struct silt_error ignored;
    uint64_t pids, cpu_ns;
    int memory = c->dirs[MEMORY];
    silt_cgroup_name(slot, name);
    if (silt_cgroup_get(c, silt_cgroup_at(memory, name), "memory.usage_in_bytes", NULL,
                        &ret->memory_bytes, e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(memory, name), "memory.max_usage_in_bytes", NULL,
                        &ret->memory_peak_bytes, e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(c->dirs[PIDS], name), "pids.current", NULL, &pids, e) < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(cpuacct_of(c), name), "cpuacct.usage", NULL, &cpu_ns, e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(memory, name), "memory.oom_control", "oom_kill",
                        &ret->oom_kills, &ignored)
        < 0)
        ret->oom_kills = 0; /* kernels before 4.13 do not count them */
    if (silt_cgroup_get(c, silt_cgroup_at(memory, name), "memory.stat", "total_inactive_file",
                        &ret->memory_cache_bytes, &ignored)
        < 0)
        ret->memory_cache_bytes = 0;
    ret->pids = (uint32_t)pids;
    ret->cpu_us = cpu_ns / 1000;
    return 0;
}

/* The handles below are frozen with their parent, whatever their own state says. */
static int freeze(const struct silt_cgroups *c, uint32_t slot, bool frozen, struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, name);
    return silt_cgroup_put(c, silt_cgroup_at(freezer_of(c), name), "freezer.state",
                           frozen ? "FROZEN" : "THAWED", e);
}

static int is_frozen(const struct silt_cgroups *c, uint32_t slot, bool *ret, struct silt_error *e)
{
    char name[SILT_CGROUP_NAME_SIZE], text[16] = "";
    silt_auto_fd state = -1;
    silt_cgroup_name(slot, name);
    if (silt_cgroup_open_file(c, silt_cgroup_at(freezer_of(c), name), "freezer.state", O_RDONLY,
                              &state, e)
        < 0)
        return -1;
    if (read(state, text, sizeof(text) - 1) <= 0)
        return silt_fail_errno(e, "read freezer.state of %s", name);
    *ret = strncmp(text, "FROZEN", 6) == 0; /* not FREEZING */
    return 0;
}

struct visit {
    const struct silt_cgroups *c;
    const char *group;
};

static void thaw_and_kill(const struct silt_cgroups *c, const char *group)
{
    struct silt_error ignored;
    (void)silt_cgroup_put(c, silt_cgroup_at(freezer_of(c), group), "freezer.state", "THAWED",
                          &ignored);
    silt_cgroup_kill_listed(c, silt_cgroup_at(freezer_of(c), group), "cgroup.procs");
}

static int kill_handle(void *context, const char *name)
{
    const struct visit *v = context;
    char path[NAME_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", v->group, name);
    thaw_and_kill(v->c, path);
    return 0;
}

/* On v1 a frozen process dies only after it is thawed. */
static void kill_v1(const struct silt_cgroups *c, const char *group)
{
    struct visit v = {.c = c, .group = group};
    thaw_and_kill(c, group);
    (void)silt_cgroup_each(freezer_of(c), group, kill_handle, &v);
    for (int i = 0; i < c->ndirs - 1; i++)
        silt_cgroup_kill_listed(c, silt_cgroup_at(c->dirs[i], group), "cgroup.procs");
}

static int rmdir_handle(void *context, const char *name)
{
    const struct visit *v = context;
    char path[NAME_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", v->group, name);
    return unlinkat(freezer_of(v->c), path, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

/* Handles are numbered from 0; normally the first missing number ends the loop. An earlier run that
 * met a live process leaves gaps; then the directory is listed, which costs more. */
static int rmdir_freezer(const struct silt_cgroups *c, const char *group)
{
    struct visit v = {.c = c, .group = group};
    char path[NAME_MAX];
    for (unsigned k = 0; k < SILT_HANDLES_MAX; k++) {
        (void)snprintf(path, sizeof(path), "%s/h%u", group, k);
        if (unlinkat(freezer_of(c), path, AT_REMOVEDIR) == 0)
            continue;
        if (errno != ENOENT)
            return -1;
        break;
    }
    if (unlinkat(freezer_of(c), group, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (silt_cgroup_each(freezer_of(c), group, rmdir_handle, &v) < 0)
        return -1;
    return unlinkat(freezer_of(c), group, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

static int rmdir_v1(const struct silt_cgroups *c, const char *group)
{
    if (rmdir_freezer(c, group) < 0)
        return -1;
    for (int i = 0; i < c->ndirs - 1; i++)
        if (unlinkat(c->dirs[i], group, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return -1;
    return 0;
}

/* The limits apply to all silt-fetch processes together; only the freezer has a group for each. */
static int fetch(const struct silt_cgroups *c, const char *group, struct silt_cgroup_entry *ret,
                 struct silt_error *e)
{
    if (silt_cgroup_check_fetches(c, c->dirs[PIDS], e) < 0)
        return -1;
    if (mkdirat(freezer_of(c), group, 0755) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make it");
    for (int i = 0; i < c->ndirs; i++) {
        const char *name = i == c->ndirs - 1 ? group : "fetch";
        if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[i], name), "tasks", O_WRONLY,
                                  &ret->tasks[i], e)
            < 0)
            return -1;
        ret->count = i + 1;
    }
    return 0;
}

const struct silt_cgroup_table silt_cgroup_v1 = {
    .open = open_all,
    .make = make,
    .limit = limit,
    .birth = birth,
    .handle = handle,
    .drop = drop,
    .stat = stat_v1,
    .tcp = tcp_v1,
    .freeze = freeze,
    .is_frozen = is_frozen,
    .kill = kill_v1,
    .rmdir = rmdir_v1,
    .fetch = fetch,
};
