/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_table: the operations that differ between cgroup v1 and v2. Private to cgroup*.c. */
#pragma once

#include "engine/core/cgroup.h"

struct silt_cgroup_table {
    int (*open)(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                struct silt_error *e);
    int (*make)(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e);
    int (*limit)(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                 struct silt_error *e);
    int (*birth)(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_birth *ret,
                 struct silt_error *e);
    /* Creates one handle and appends its descriptors at ret_fds[*nfds]. SILT_CONFLICT: number k is
     * taken. */
    int (*handle)(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fds, int *nfds,
                  struct silt_error *e);
    void (*drop)(const struct silt_cgroups *c, uint32_t slot, uint32_t k); /* only if it is empty */
    int (*stat)(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                struct silt_error *e);
    int (*tcp)(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_tcp *ret,
               struct silt_error *e);
    /* Asks the kernel, which freezes in the background. */
    int (*freeze)(const struct silt_cgroups *c, uint32_t slot, bool frozen, struct silt_error *e);
    int (*is_frozen)(const struct silt_cgroups *c, uint32_t slot, bool *ret, struct silt_error *e);
    void (*kill)(const struct silt_cgroups *c, const char *group);
    /* Tries once; -1 with errno, EBUSY while a process is left. */
    int (*rmdir)(const struct silt_cgroups *c, const char *group);
    int (*fetch)(const struct silt_cgroups *c, const char *group, struct silt_cgroup_entry *ret,
                 struct silt_error *e);
};

extern const struct silt_cgroup_table silt_cgroup_v1, silt_cgroup_v2;

enum {
    SILT_CGROUP_NAME_SIZE = 32,
    /* for all silt-fetch processes together; each may use half of it */
    SILT_CGROUP_FETCH_MIB = 2048,
    /* v2: one silt-init: its data and stack limits, plus kernel memory */
    SILT_CGROUP_AGENT_MIB = 32,
    SILT_CGROUP_FETCH_PIDS = 64, /* a silt-fetch is one process */
};
/* v1: memory limit of all silt-init processes together, including the page cache of the logs they
 * write. */
uint64_t silt_cgroup_agents_max(const struct silt_cgroups *c);
/* v1: a quarter of the guest's memory, at least 64 MiB, capped so that the machine's TCP memory is
 * never exhausted. */
uint64_t silt_cgroup_tcp_limit(const struct silt_cgroups *c, uint64_t memory_bytes);
void silt_cgroup_name(uint32_t slot, char name[SILT_CGROUP_NAME_SIZE]);

/* A group: the path `group` below one of dirs[] or tops[]. */
struct silt_cgroup_at {
    int dir;
    const char *group;
};
static inline struct silt_cgroup_at silt_cgroup_at(int dir, const char *group)
{
    return (struct silt_cgroup_at){.dir = dir, .group = group};
}

int silt_cgroup_open_file(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                          int flags, int *ret_fd, struct silt_error *e);
int silt_cgroup_put(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                    const char *text, struct silt_error *e);
int silt_cgroup_put_number(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                           uint64_t number, struct silt_error *e);
/* Sets the CPU time per period and lets an idle guest save up one period's worth as burst: most
 * commands are short bursts and would otherwise be throttled midway. */
int silt_cgroup_put_quota(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                          const char *burst_file, uint64_t quota_us, const char *period,
                          struct silt_error *e);
/* Reads the first number of the file, or the number after `key `; "max" is UINT64_MAX. */
int silt_cgroup_get(const struct silt_cgroups *c, struct silt_cgroup_at at, const char *file,
                    const char *key, uint64_t *ret, struct silt_error *e);
/* Kills the processes listed in the file whose uids are in the instance's range. */
void silt_cgroup_kill_listed(const struct silt_cgroups *c, struct silt_cgroup_at at,
                             const char *file);
/* `pids`: the directory of the controller that counts processes. */
int silt_cgroup_check_fetches(const struct silt_cgroups *c, int pids, struct silt_error *e);
/* Calls `each` for every directory below dir/group. Stops at the first -1 and returns it. */
int silt_cgroup_each(int dir, const char *group, int (*each)(void *context, const char *name),
                     void *context);
/* Creates `name` below dir if missing, and opens it; -1 with errno. */
int silt_cgroup_enter(int dir, const char *name);
