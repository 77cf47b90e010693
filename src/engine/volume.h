/* SPDX-License-Identifier: Apache-2.0 */
/* volume: what one sandbox has written, a btrfs subvolume `s/<slot>` of the pool with a limit of
 * its own: upper/  the writable layer, owned by the sandbox's first id work/   overlayfs's own
 *     state/  ours, outside of the guest's view: spools, `log-<number>`, the logs of its processes, and
 *             `init`, the pid of its first process
 * Where the pool is not on btrfs it is a plain folder and nothing bounds it. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct silt_volumes {
    int slots;   /* <pool>/s */
    int layers;  /* <pool>/l: engine/layer.h */
    int records; /* <pool>/r: engine/recovery.h */
    int trash;   /* <pool>/trash */
    int qgroups; /* /sys/fs/btrfs/<id>/qgroups: usage of the moment; -1: not there */
    uint64_t group; /* of quotas: all volumes are in it (engine/pool_room.h); 0: there are no quotas */
    bool btrfs;
};

/* The folder for `qgroups`; asks for /sys of the machine, so before the stage is set. -1: none. */
int silt_volumes_find_qgroups(const char *pool);
/* Takes qgroups. Makes the folders that are missing. */
int silt_volumes_open(struct silt_volumes *v, const char *pool, int qgroups, struct silt_error *e);

/* A new one; what lies in the way goes to the trash. *ret_fd: its folder. */
int silt_volume_make(const struct silt_volumes *v, uint32_t slot, uid_t owner, int *ret_fd,
                     struct silt_error *e);
int silt_volume_open(const struct silt_volumes *v, uint32_t slot, int *ret_fd,
                     struct silt_error *e);
/* `volume` is a folder from the two above. */
int silt_volume_limit(const struct silt_volumes *v, int volume, uint64_t bytes,
                      struct silt_error *e);
int silt_volume_usage(const struct silt_volumes *v, int volume, uint64_t *ret,
                      struct silt_error *e);
/* Of all volumes together. */
int silt_volumes_usage(const struct silt_volumes *v, uint64_t *ret, struct silt_error *e);
/* One of a former version joins the group of all. True: the kernel has to count again. */
bool silt_volume_join(const struct silt_volumes *v, const char *name);
int silt_volume_spool(int volume, int *ret_fd,
                      struct silt_error *e); /* a nameless file in state/ */
/* `fresh`: it must not be there yet, else it must. */
int silt_volume_log(int volume, uint64_t number, bool fresh, int *ret_fd, struct silt_error *e);
int silt_volume_unlog(int volume, uint64_t number, struct silt_error *e); /* fine when missing */
/* Out of the way at once, deleted by the janitor. Fine when it is not there. */
int silt_volume_discard(const struct silt_volumes *v, uint32_t slot, struct silt_error *e);
int silt_volumes_empty_trash(const struct silt_volumes *v, struct silt_error *e);
/* What was deleted is room again after some commits, which come by themselves every half minute: on a
 * full pool one comes now. True: it is full. Waits for the disk. */
bool silt_volumes_hurry(const struct silt_volumes *v);
/* Less than an eighth is left, and less than 16 GiB: about as much as one sandbox may write. */
bool silt_volumes_are_crowded(const struct silt_volumes *v);

/* That of a ready sandbox, made for nobody yet. Whoever claims it has a recovery record. */
int silt_volume_note_ready(int volume, struct silt_error *e);
void silt_volume_forget_ready(int volume);
bool silt_volume_is_ready(int volume);

/* The pid of the sandbox's first process, as the machine counts. 0: none is noted. */
int silt_volume_note_init(int volume, pid_t pid, struct silt_error *e);
pid_t silt_volume_init(int volume);
void silt_volume_forget_init(int volume);
