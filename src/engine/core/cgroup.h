/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: the control groups of one instance. One interface for version 1 (a directory per
 * hierarchy) and version 2 (one directory for all controllers). Used by silt-priv and its workers.
 *
 *   v1  <root>/<controller>/<instance>/s<slot>      the guest's processes, limits
 *       <root>/<controller>/<instance>/agents       every silt-init
 *       <root>/<controller>/<instance>/fetch        every silt-fetch
 *       <root>/freezer/<instance>/fetch/h<n>        the silt-fetch of one staging directory
 *       <root>/freezer/<instance>/s<slot>/h<k>      handles
 *   v2  <root>/<instance>/s<slot>/{agent,guest,guest/h<k>}, <root>/<instance>/fetch/h<n>
 *
 * A process joins its group at birth: on v1 it writes 0 to `tasks` itself, on v2 it is cloned with
 * CLONE_INTO_CGROUP. Never write a pid to cgroup.procs: that waits for an RCU grace period (7 to 12
 * ms). */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SILT_CGROUP_DIRS_MAX = 5,                /* memory, pids, cpu, cpuacct, freezer */
    SILT_CGROUP_FDS_PER_HANDLE = 3,          /* upper bound of SILT_HANDLE_FDS_V1 and _V2 */
    SILT_CGROUP_CONTEXTS_MAX = 96,           /* more than siltd allows: some may still be ending */
    SILT_CGROUP_EXPORTS = SILT_STAGINGS_MAX, /* the group of read-only silt-fetch processes */
};

struct silt_cgroup_table;

/* Opened once by silt-priv; the descriptors stay open until the process exits. */
struct silt_cgroups {
    const struct silt_cgroup_table *table;
    char instance[8];
    int tops[SILT_CGROUP_DIRS_MAX];   /* roots of the hierarchies; v2: only [0] */
    int dirs[SILT_CGROUP_DIRS_MAX];   /* the instance's directory in each */
    int agents[SILT_CGROUP_DIRS_MAX]; /* v1: `tasks` of each agents directory */
    int ndirs;
    int version; /* 1 or 2 */
    /* O_CREAT in tests, whose tree is not a cgroup file system and starts without files */
    int create_flag;
    uint32_t ids_base, ids_count, ids_images; /* only processes with these ids may be killed */
    /* upper bound of a guest's TCP memory, whatever its other limits: see silt_cgroup_tcp_limit */
    uint64_t tcp_most;
};

struct silt_cgroups_config {
    const char *root; /* /sys/fs/cgroup */
    const char *instance;
    uint32_t ids_base;
    uint32_t ids_count; /* number of ids, not of slots */
    uint32_t ids_images;
};

/* What the first process of a sandbox needs to join its groups. The caller owns the descriptors. */
struct silt_cgroup_birth {
    int into;                        /* v2: directory for CLONE_INTO_CGROUP; else -1 */
    int joins[SILT_CGROUP_DIRS_MAX]; /* v1: `tasks` of the guest's groups, the freezer's last */
    int njoins;                      /* v2: 0 */
    int oom, peak, pids;             /* passed to silt-init, see wire/agent.h */
};

int silt_cgroups_open(struct silt_cgroups *c, const struct silt_cgroups_config *config,
                      struct silt_error *e);
/* Kills all processes of sandboxes and imports, and removes the sandboxes' groups. */
int silt_cgroups_clear(struct silt_cgroups *c, struct silt_error *e);
/* Like silt_cgroups_clear, and removes the instance's own directories; `c` is unusable
 * afterwards. */
int silt_cgroups_remove(struct silt_cgroups *c, struct silt_error *e);

/* Creates the groups of a new sandbox and sets its limits. Leftovers of an earlier sandbox in this
 * slot are killed and removed first. */
int silt_cgroup_make(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                     struct silt_error *e);
int silt_cgroup_birth_open(const struct silt_cgroups *c, uint32_t slot,
                           struct silt_cgroup_birth *ret, struct silt_error *e);
void silt_cgroup_birth_close(struct silt_cgroup_birth *b);
int silt_cgroup_limit(const struct silt_cgroups *c, uint32_t slot, const struct silt_priv_limits *l,
                      struct silt_error *e);
/* Creates `count` handles and stores their descriptors in ret_fds, in the order given in
 * wire/agent.h. ret_fds has room for count * SILT_CGROUP_FDS_PER_HANDLE. */
int silt_cgroup_handles(const struct silt_cgroups *c, uint32_t slot, uint32_t count, int *ret_fds,
                        int *ret_nfds, struct silt_error *e);
/* Creates a handle for a context, in addition to silt-init's own. *ret_k is its number until
 * silt_cgroup_context_remove. */
int silt_cgroup_context(const struct silt_cgroups *c, uint32_t slot, uint32_t *ret_k, int *ret_fds,
                        int *ret_nfds, struct silt_error *e);
/* Opens the handle for a process that joins as the machine's root, before it enters the sandbox.
 * v2: the handle's directory. */
int silt_cgroup_context_join(const struct silt_cgroups *c, uint32_t slot, uint32_t k, int *ret_fd,
                             struct silt_error *e);
void silt_cgroup_context_remove(const struct silt_cgroups *c, uint32_t slot, uint32_t k);
/* Does not fill in the disk fields. SILT_NOT_FOUND: the sandbox has no groups. */
int silt_cgroup_stat(const struct silt_cgroups *c, uint32_t slot, struct silt_priv_stat *ret,
                     struct silt_error *e);
/* Kernel memory of a guest's TCP sockets. The kernel throttles a guest near `limit` but does not
 * guarantee it; silt-priv's TCP watcher enforces it (priv/tcp_memory.h). */
struct silt_cgroup_tcp {
    uint64_t limit, charged;
};
/* SILT_NOT_FOUND: the group does not exist. */
int silt_cgroup_tcp(const struct silt_cgroups *c, uint32_t slot, struct silt_cgroup_tcp *ret,
                    struct silt_error *e);
/* Calls `each` for every sandbox that has groups. */
void silt_cgroups_each_slot(const struct silt_cgroups *c,
                            void (*each)(void *context, uint32_t slot), void *context);
/* Freezes the guest's processes and waits until the kernel has; silt-init is not among them.
 * SILT_TIMEOUT: some were still running after a second, and all are thawed again. */
int silt_cgroup_freeze(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e);
int silt_cgroup_thaw(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e);
/* Kills the guest's processes; silt-init keeps running. */
void silt_cgroup_kill_guest(const struct silt_cgroups *c, uint32_t slot);
/* Thaws the sandbox's groups and kills everything in them, including processes that a kill by pidfd
 * missed. */
void silt_cgroup_kill(const struct silt_cgroups *c, uint32_t slot);
/* Waits briefly for the last process to exit, then kills it. Succeeds if the groups do not
 * exist. */
int silt_cgroup_remove(const struct silt_cgroups *c, uint32_t slot, struct silt_error *e);
/* How a silt-fetch joins its group. The caller owns the descriptors. */
struct silt_cgroup_entry {
    int into;                        /* v2: directory for CLONE_INTO_CGROUP; else -1 */
    int tasks[SILT_CGROUP_DIRS_MAX]; /* v1: `tasks` files to write 0 to */
    int count;
};
#define SILT_CGROUP_NO_ENTRY ((struct silt_cgroup_entry){.into = -1})
/* `number` is the staging directory's number, or SILT_CGROUP_EXPORTS. SILT_LIMIT: too many
 * groups. */
int silt_cgroup_fetch(const struct silt_cgroups *c, uint32_t number, struct silt_cgroup_entry *ret,
                      struct silt_error *e);
void silt_cgroup_entry_close(struct silt_cgroup_entry *x);
/* Kills everything in the group and removes it; 0 means that the group is certainly empty. Succeeds
 * if the group does not exist. SILT_TIMEOUT: a process does not die. */
int silt_cgroup_fetch_end(const struct silt_cgroups *c, uint32_t number, struct silt_error *e);
