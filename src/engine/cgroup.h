/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: the control groups of one instance, on version 1 (one folder per hierarchy) and version 2
 * (one folder in all) behind one table. v1  <root>/<controller>/<instance>/s<slot>      the guest's
 * processes, limits <root>/<controller>/<instance>/agents       every silt-init
 *         <root>/<controller>/<instance>/fetch        every silt-fetch
 *         <root>/freezer/<instance>/fetch/h<n>        that of one staging folder
 *         <root>/freezer/<instance>/s<slot>/h<k>      handles
 *     v2  <root>/<instance>/s<slot>/{agent,guest,guest/h<k>}, <root>/<instance>/fetch/h<n>
 * A process joins at birth: v1 by writing 0 to `tasks` itself, v2 by CLONE_INTO_CGROUP. Nobody
 * writes a pid to cgroup.procs: that waits for a grace period (7 to 12 ms). */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SILT_CGROUP_DIRS_MAX = 5,      /* memory, pids, cpu, cpuacct, freezer */
    SILT_CGROUP_FDS_PER_HANDLE = 3, /* at most: SILT_HANDLE_FDS_V1, _V2 */
    SILT_CGROUP_CONTEXTS_MAX = 96, /* more than siltd has: some may still be on their way out */
    SILT_CGROUP_EXPORTS = SILT_STAGINGS_MAX, /* group of those silt-fetches that only read */
};

struct silt_cgroup_table;

/* Opened once by silt-priv; the descriptors live as long as the program. */
struct silt_cgroups {
    const struct silt_cgroup_table *table;
    char instance[8];
    int tops[SILT_CGROUP_DIRS_MAX];   /* the hierarchies' roots; v2: [0] */
    int dirs[SILT_CGROUP_DIRS_MAX];   /* the instance's folders in them */
    int agents[SILT_CGROUP_DIRS_MAX]; /* v1: `tasks` of each agents folder */
    int ndirs;
    int version;     /* 1 or 2 */
    int create_flag; /* O_CREAT for a tree that no kernel fills with files: tests only */
    uint32_t ids_base, ids_count, ids_images; /* whom a kill may hit */
};

struct silt_cgroups_config {
    const char *root; /* /sys/fs/cgroup */
    const char *instance;
    uint32_t ids_base;
    uint32_t ids_count; /* ids, not slots */
    uint32_t ids_images;
};

/* What the first process of a sandbox is born with; the descriptors are the holder's. */
struct silt_cgroup_birth {
    int into;                        /* v2: folder for CLONE_INTO_CGROUP; else -1 */
    int joins[SILT_CGROUP_DIRS_MAX]; /* v1: `tasks` of the guest's groups, the freezer's last */
    int njoins;                      /* v2: 0 */
    int oom, peak, pids;             /* for silt-init, as in wire/agent.h */
};

int silt_cgroups_open(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                      struct silt_error *e);
/* Kills every process of sandboxes and imports and removes the sandboxes' groups. */
int silt_cgroups_clear(struct silt_cgroups *c, struct silt_error *e);
/* Also removes the instance's own folders: nothing works after it. */
int silt_cgroups_remove(struct silt_cgroups *c, struct silt_error *e);

/* A new sandbox's groups with their limits; what lies in the way is killed and removed first. */
int silt_cgroup_make(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                     struct silt_error *e);
int silt_cgroup_birth_open(const struct silt_cgroups *c, uint32_t slot,
                           struct silt_cgroup_birth *ret, struct silt_error *e);
void silt_cgroup_birth_close(struct silt_cgroup_birth *b);
int silt_cgroup_limit(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                      struct silt_error *e);
/* Adds `count` handles: their descriptors in the order of wire/agent.h, from ret_fds[0] on. The
 * caller gives room for count * SILT_CGROUP_FDS_PER_HANDLE. */
int silt_cgroup_handles(const struct silt_cgroups *c, uint32_t slot, uint32_t count, int *ret_fds,
                        int *ret_nfds, struct silt_error *e);
/* One for a context, beside those that silt-init has: *ret_k names it until silt_cgroup_context_remove. */
int silt_cgroup_context(const struct silt_cgroups *c, uint32_t slot, uint32_t *ret_k, int *ret_fds,
                        int *ret_nfds, struct silt_error *e);
/* For root itself, which is not a process of the sandbox yet when it joins. v2: a folder, as in the handle's own. */
int silt_cgroup_context_join(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fd, struct silt_error *e);
void silt_cgroup_context_remove(const struct silt_cgroups *c, uint32_t slot, uint32_t k);
/* Leaves what concerns the disk alone. SILT_NOT_FOUND when the sandbox has no groups. */
int silt_cgroup_stat(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                     struct silt_error *e);
/* Thaws and kills whatever lives in the sandbox's groups: the way for what a pidfd did not end. */
void silt_cgroup_kill(const struct silt_cgroups *c, uint32_t slot);
/* Waits a little for the last process to be gone, then kills it. Fine when there is nothing. */
int silt_cgroup_remove(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e);
/* How a silt-fetch joins its group; the descriptors are the holder's. */
struct silt_cgroup_entry {
    int into;                        /* v2: folder for CLONE_INTO_CGROUP; else -1 */
    int tasks[SILT_CGROUP_DIRS_MAX]; /* v1: to write 0 to */
    int count;
};
#define SILT_CGROUP_NO_ENTRY ((struct silt_cgroup_entry){.into = -1})
/* `number` is that of the staging folder, or SILT_CGROUP_EXPORTS. SILT_LIMIT: there are too many. */
int silt_cgroup_fetch(const struct silt_cgroups *c, uint32_t number, struct silt_cgroup_entry *ret,
                      struct silt_error *e);
void silt_cgroup_entry_close(struct silt_cgroup_entry *x);
/* Kills whatever lives in that group and removes it; answers 0 when it is empty for certain. Fine when there is
 * none. SILT_TIMEOUT: somebody does not die. */
int silt_cgroup_fetch_end(const struct silt_cgroups *c, uint32_t number, struct silt_error *e);
