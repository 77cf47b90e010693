/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_v2: the unified hierarchy. A directory whose children have controllers may not contain
 * processes, so silt-priv is in `priv`, silt-init in s<slot>/agent and the guest in s<slot>/guest;
 * handles below `guest` have no controllers. silt-init puts its children into handles with
 * CLONE_INTO_CGROUP, for which it needs write access to cgroup.procs of the handle and of the
 * common ancestor s<slot>. */
#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "engine/core/cgroup_table.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PERIOD_US = 100000, QUOTA_LEAST_US = 1000, PATH_SIZE = 64 };

static void enable(const struct silt_cgroups *c, int dir, const char *group)
{
    static const char *const wanted[] = {"+memory", "+pids", "+cpu"};
    struct silt_error e;
    for (size_t i = 0; i < SILT_COUNT(wanted); i++)
        if (silt_cgroup_put(c, silt_cgroup_at(dir, group), "cgroup.subtree_control", wanted[i], &e)
            < 0)
            silt_log(SILT_LOG_WARN, "cgroup.no_controller", "controller=%s error=\"%s\"",
                     wanted[i] + 1, e.text);
}

/* Inside a sandbox, cgroup paths start at the instance's directory. It can become the root of a
 * cgroup namespace only while it may contain a process: before its children get controllers. For a
 * restarted silt-priv that is too late; its sandboxes then see the whole path, which reveals
 * nothing secret. */
static int settle(struct silt_cgroups *c, struct silt_error *e)
{
    struct silt_error ignored;
    if (silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], "."), "cgroup.procs", "0", &ignored) == 0
        && c->create_flag == 0 && unshare(CLONE_NEWCGROUP) < 0)
        return silt_fail_errno(e, "make a cgroup namespace");
    return silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], "priv"), "cgroup.procs", "0", e);
}

/* The controller is not available everywhere; enable() has logged that. */
static void limit_fetch(const struct silt_cgroups *c)
{
    struct silt_error ignored;
    struct silt_cgroup_at at = silt_cgroup_at(c->dirs[0], "fetch");
    (void)silt_cgroup_put_number(c, at, "memory.max", (uint64_t)SILT_CGROUP_FETCH_MIB << 20,
                                 &ignored);
    (void)silt_cgroup_put_number(c, at, "memory.swap.max", 0, &ignored);
    (void)silt_cgroup_put_number(c, at, "pids.max", SILT_CGROUP_FETCH_PIDS, &ignored);
}

static int open_all(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                    struct silt_error *e)
{
    c->tops[0] = open(config->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->tops[0] < 0)
        return silt_fail_errno(e, "open %s", config->root);
    enable(c, c->tops[0], ".");
    c->dirs[0] = silt_cgroup_enter(c->tops[0], c->instance);
    if (c->dirs[0] < 0)
        return silt_fail_errno(e, "make cgroup %s", c->instance);
    silt_auto_fd priv = silt_cgroup_enter(c->dirs[0], "priv");
    silt_auto_fd fetch = silt_cgroup_enter(c->dirs[0], "fetch");
    if (priv < 0 || fetch < 0)
        return silt_fail_errno(e, "make cgroups priv and fetch");
    if (settle(c, e) < 0)
        return -1;
    enable(c, c->dirs[0], ".");
    c->ndirs = 1;
    limit_fetch(c);
    return 0;
}

static int may_move(const struct silt_cgroups *c, uint32_t slot, const char *group,
                    struct silt_error *e)
{
    char path[PATH_SIZE];
    uid_t owner = c->ids_base + slot * SILT_SLOT_IDS;
    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    if (fchownat(c->dirs[0], path, owner, owner, 0) < 0 && c->create_flag == 0)
        return silt_fail_errno(e, "give %s to the sandbox", path);
    return 0;
}

/* As for silt-fetch. A silt-init that reaches the limit is killed: its sandbox has crashed. */
static void limit_agent(const struct silt_cgroups *c, const char *agent)
{
    struct silt_error ignored;
    struct silt_cgroup_at at = silt_cgroup_at(c->dirs[0], agent);
    if (silt_without("agents_memory"))
        return;
    (void)silt_cgroup_put_number(c, at, "memory.max", (uint64_t)SILT_CGROUP_AGENT_MIB << 20,
                                 &ignored);
    (void)silt_cgroup_put_number(c, at, "memory.swap.max", 0, &ignored);
}

static int make(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e)
{
    char group[SILT_CGROUP_NAME_SIZE], agent[SILT_CGROUP_NAME_SIZE], guest[SILT_CGROUP_NAME_SIZE];
    silt_cgroup_name(slot, group);
    (void)snprintf(agent, sizeof(agent), "s%u/agent", slot);
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    if (mkdirat(c->dirs[0], group, 0755) < 0 || mkdirat(c->dirs[0], agent, 0755) < 0
        || mkdirat(c->dirs[0], guest, 0755) < 0)
        return silt_fail_errno(e, "make cgroup %s", group);
    enable(c, c->dirs[0], group);
    limit_agent(c, agent);
    return may_move(c, slot, group, e);
}

static int limit_cpu(const struct silt_cgroups *c, const char *group, uint32_t milli,
                     struct silt_error *e)
{
    char period[16];
    struct silt_error ignored;
    if (milli == 0) {
        (void)silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[0], group), "cpu.max.burst", 0,
                                     &ignored);
        return silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], group), "cpu.max", "max", e);
    }
    uint64_t quota = (uint64_t)milli * (PERIOD_US / 1000);
    if (quota < QUOTA_LEAST_US)
        quota = QUOTA_LEAST_US;
    (void)snprintf(period, sizeof(period), " %d", PERIOD_US);
    return silt_cgroup_put_quota(c, silt_cgroup_at(c->dirs[0], group), "cpu.max", "cpu.max.burst",
                                 quota, period, e);
}

static int limit(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                 struct silt_error *e)
{
    char guest[SILT_CGROUP_NAME_SIZE];
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    if (!silt_without("memory_limit")) {
        if (silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[0], guest), "memory.max",
                                   l->memory_bytes, e)
            < 0)
            return -1;
        if (silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[0], guest), "memory.swap.max", 0, e)
                < 0
            && e->sys != ENOENT) /* only if swap is accounted */
            return -1;
    }
    if (!silt_without("pids_limit")
        && silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[0], guest), "pids.max", l->pids, e) < 0)
        return -1;
    return silt_without("cpu_limit") ? 0 : limit_cpu(c, guest, l->cpu_milli, e);
}

static int birth(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_birth *ret,
                 struct silt_error *e)
{
    char agent[SILT_CGROUP_NAME_SIZE], guest[SILT_CGROUP_NAME_SIZE];
    (void)snprintf(agent, sizeof(agent), "s%u/agent", slot);
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    ret->into = openat(c->dirs[0], agent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->into < 0)
        return silt_fail_errno(e, "open cgroup %s", agent);
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], guest), "memory.events", O_RDONLY,
                              &ret->oom, e)
        < 0)
        return -1;
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], guest), "memory.peak", O_RDONLY,
                              &ret->peak, e)
            < 0
        && silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], guest), "memory.current", O_RDONLY,
                                 &ret->peak, e)
               < 0)
        return -1;
    return silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], guest), "pids.events", O_RDONLY,
                                 &ret->pids, e);
}

static int handle(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fds, int *nfds,
                  struct silt_error *e)
{
    char path[PATH_SIZE];
    silt_auto_fd directory = -1, procs = -1, killer = -1;
    (void)snprintf(path, sizeof(path), "s%u/guest/h%u", slot, k);
    if (mkdirat(c->dirs[0], path, 0755) < 0)
        return silt_fail_errno(e, "make handle %s", path);
    directory = openat(c->dirs[0], path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return silt_fail_errno(e, "open handle %s", path);
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], path), "cgroup.procs", O_RDONLY, &procs,
                              e)
        < 0)
        return -1;
    if (silt_cgroup_open_file(c, silt_cgroup_at(c->dirs[0], path), "cgroup.kill", O_WRONLY, &killer,
                              e)
        < 0)
        return -1;
    if (may_move(c, slot, path, e) < 0)
        return -1;
    ret_fds[(*nfds)++] = silt_take_fd(&directory);
    ret_fds[(*nfds)++] = silt_take_fd(&procs);
    ret_fds[(*nfds)++] = silt_take_fd(&killer);
    return 0;
}

static void drop(const struct silt_cgroups *c, uint32_t slot, uint32_t k)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "s%u/guest/h%u", slot, k);
    (void)unlinkat(c->dirs[0], path, AT_REMOVEDIR);
}

static int stat_v2(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                   struct silt_error *e)
{
    char guest[SILT_CGROUP_NAME_SIZE];
    struct silt_error ignored;
    uint64_t pids;
    int dir = c->dirs[0];
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "memory.current", NULL, &ret->memory_bytes,
                        e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "memory.peak", NULL, &ret->memory_peak_bytes,
                        &ignored)
        < 0)
        ret->memory_peak_bytes = ret->memory_bytes; /* kernels before 5.19 */
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "pids.current", NULL, &pids, e) < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "cpu.stat", "usage_usec", &ret->cpu_us, e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "memory.events", "oom_kill", &ret->oom_kills,
                        e)
        < 0)
        return -1;
    if (silt_cgroup_get(c, silt_cgroup_at(dir, guest), "memory.stat", "inactive_file",
                        &ret->memory_cache_bytes, &ignored)
        < 0)
        ret->memory_cache_bytes = 0;
    ret->pids = (uint32_t)pids;
    return 0;
}

/* v2 charges sockets to the guest's memory, so its memory limit applies. */
static int tcp_v2(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_tcp *ret,
                  struct silt_error *e)
{
    char guest[SILT_CGROUP_NAME_SIZE];
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    if (silt_cgroup_get(c, silt_cgroup_at(c->dirs[0], guest), "memory.max", NULL, &ret->limit, e)
            < 0
        || silt_cgroup_get(c, silt_cgroup_at(c->dirs[0], guest), "memory.stat", "sock",
                           &ret->charged, e)
               < 0)
        return -1;
    ret->limit = ret->limit < c->tcp_most ? ret->limit : c->tcp_most;
    return 0;
}

static int freeze(const struct silt_cgroups *c, uint32_t slot, bool frozen, struct silt_error *e)
{
    char guest[SILT_CGROUP_NAME_SIZE];
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    return silt_cgroup_put_number(c, silt_cgroup_at(c->dirs[0], guest), "cgroup.freeze", frozen, e);
}

static int is_frozen(const struct silt_cgroups *c, uint32_t slot, bool *ret, struct silt_error *e)
{
    char guest[SILT_CGROUP_NAME_SIZE];
    uint64_t frozen;
    (void)snprintf(guest, sizeof(guest), "s%u/guest", slot);
    if (silt_cgroup_get(c, silt_cgroup_at(c->dirs[0], guest), "cgroup.events", "frozen", &frozen, e)
        < 0)
        return -1;
    *ret = frozen != 0;
    return 0;
}

/* silt-init first: it would otherwise record the deaths of its children as ordinary exits. */
static void kill_v2(const struct silt_cgroups *c, const char *group)
{
    char agent[PATH_SIZE];
    struct silt_error ignored;
    (void)snprintf(agent, sizeof(agent), "%s/agent", group);
    (void)silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], agent), "cgroup.kill", "1", &ignored);
    (void)silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], group), "cgroup.freeze", "0", &ignored);
    (void)silt_cgroup_put(c, silt_cgroup_at(c->dirs[0], group), "cgroup.kill", "1", &ignored);
}

struct visit {
    const struct silt_cgroups *c;
    const char *group;
};

/* Depth first; a sandbox's groups are at most two levels deep. */
static int rmdir_below(void *context, const char *name)
{
    const struct visit *v = context;
    char path[PATH_SIZE];
    if (snprintf(path, sizeof(path), "%s/%s", v->group, name) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    struct visit below = {.c = v->c, .group = path};
    if (silt_cgroup_each(v->c->dirs[0], path, rmdir_below, &below) < 0)
        return -1;
    return unlinkat(v->c->dirs[0], path, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

static int rmdir_v2(const struct silt_cgroups *c, const char *group)
{
    struct visit v = {.c = c, .group = group};
    if (silt_cgroup_each(c->dirs[0], group, rmdir_below, &v) < 0)
        return -1;
    return unlinkat(c->dirs[0], group, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

static int fetch(const struct silt_cgroups *c, const char *group, struct silt_cgroup_entry *ret,
                 struct silt_error *e)
{
    if (silt_cgroup_check_fetches(c, c->dirs[0], e) < 0)
        return -1;
    if (mkdirat(c->dirs[0], group, 0755) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make it");
    ret->into = openat(c->dirs[0], group, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return ret->into < 0 ? silt_fail_errno(e, "open it") : 0;
}

const struct silt_cgroup_table silt_cgroup_v2 = {
    .open = open_all,
    .make = make,
    .limit = limit,
    .birth = birth,
    .handle = handle,
    .drop = drop,
    .stat = stat_v2,
    .tcp = tcp_v2,
    .freeze = freeze,
    .is_frozen = is_frozen,
    .kill = kill_v2,
    .rmdir = rmdir_v2,
    .fetch = fetch,
};
