/* SPDX-License-Identifier: Apache-2.0 */
/* volume: the files one sandbox has written, a btrfs subvolume `s/<slot>` of the pool with its own
 * quota. Without btrfs it is a plain directory and has no limit.
 *
 *   upper/  the writable layer, owned by the sandbox's first id
 *   work/   overlayfs's own
 *   state/  ours, invisible to the guest: spools, `log-<number>` (the logs of its processes) and
 *           `ready` */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct silt_volumes {
    int slots;      /* <pool>/s */
    int layers;     /* <pool>/l: engine/storage/layer.h */
    int records;    /* <pool>/r: engine/storage/recovery.h */
    int trash;      /* <pool>/trash */
    int qgroups;    /* /sys/fs/btrfs/<id>/qgroups: current usage; -1: not available */
    uint64_t group; /* quota group of all volumes (engine/storage/pool_room.h); 0: no quotas */
    bool btrfs;
};

/* Opens the directory for `qgroups`. Needs the machine's /sys, so call it before
 * silt_mount_stage_enter. -1: none. */
int silt_volumes_find_qgroups(const char *pool);
/* Takes qgroups. Creates missing directories. */
int silt_volumes_open(struct silt_volumes *v, const char *pool, int qgroups, struct silt_error *e);

/* Creates a volume; an existing one goes to the trash. *ret_fd: its directory. */
int silt_volume_make(const struct silt_volumes *v, uint32_t slot, uid_t owner, int *ret_fd,
                     struct silt_error *e);
int silt_volume_open(const struct silt_volumes *v, uint32_t slot, int *ret_fd,
                     struct silt_error *e);
/* A writable snapshot of `source`, a subvolume, as `name` below `dir`; a member of the group of all
 * volumes. */
int silt_volume_snapshot(const struct silt_volumes *v, int source, int dir, const char *name,
                         struct silt_error *e);
/* `volume` is a directory from one of the two above. */
int silt_volume_limit(const struct silt_volumes *v, int volume, uint64_t bytes,
                      struct silt_error *e);
int silt_volume_usage(const struct silt_volumes *v, int volume, uint64_t *ret,
                      struct silt_error *e);
/* Of all volumes together. */
int silt_volumes_usage(const struct silt_volumes *v, uint64_t *ret, struct silt_error *e);
/* Adds the volume to the quota group of all, or removes it. True: the kernel must recount
 * (silt_pool_room_rescan). */
bool silt_volume_join(const struct silt_volumes *v, int volume);
bool silt_volume_leave(const struct silt_volumes *v, int volume);
int silt_volume_spool(int volume, int *ret_fd,
                      struct silt_error *e); /* an unnamed file in state/ */
/* `fresh`: the log must not exist yet; otherwise it must. */
int silt_volume_log(int volume, uint64_t number, bool fresh, int *ret_fd, struct silt_error *e);
int silt_volume_unlog(int volume, uint64_t number, struct silt_error *e); /* fine when missing */
/* Moves the volume to the trash, which the janitor empties. Succeeds if it does not exist. */
int silt_volume_discard(const struct silt_volumes *v, uint32_t slot, struct silt_error *e);
/* The same for a volume of that slot that has another name. */
int silt_volume_discard_as(const struct silt_volumes *v, const char *name, uint32_t slot,
                           struct silt_error *e);
int silt_volumes_empty_trash(const struct silt_volumes *v, struct silt_error *e);
/* Deleted space becomes free after a few commits, which btrfs makes every half minute; on a full
 * pool this makes one now. True: the pool is full. Waits for the disk. */
bool silt_volumes_hurry(const struct silt_volumes *v);
/* True if less than an eighth and less than 16 GiB are left: about what one sandbox may write. */
bool silt_volumes_are_crowded(const struct silt_volumes *v);

/* Marks the volume of a ready sandbox, which no client has claimed yet. A claimed one has a
 * recovery record. */
int silt_volume_note_ready(int volume, struct silt_error *e);
void silt_volume_forget_ready(int volume);
bool silt_volume_is_ready(int volume);

/* The pid of the sandbox's first process, as a former version recorded it: now
 * engine/launch/first_pids.h has it. 0: not recorded. */
pid_t silt_volume_init(int volume);
void silt_volume_forget_init(int volume);
