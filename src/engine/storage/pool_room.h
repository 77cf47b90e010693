/* SPDX-License-Identifier: Apache-2.0 */
/* pool_room: measures the pool's free space and keeps sandboxes from using all of it. Their volumes
 * are in one quota group (silt_volumes.group), limited to their usage plus the free space beyond a
 * margin. btrfs itself and deletions thus always find space, and a full pool does not turn
 * read-only. Runs in silt-priv's keeper. */
#pragma once

#include "engine/storage/volume.h"

struct silt_pool_room {
    bool read_only;
    bool mixed;              /* data and metadata share chunks */
    uint64_t size, free;     /* from statfs */
    uint64_t unallocated;    /* in neither data nor metadata chunks */
    uint64_t data_spare;     /* free in data chunks */
    uint64_t metadata_spare; /* free in metadata chunks */
    uint64_t errors;         /* reported by the disk since the pool was made */
};

int silt_pool_room_look(const struct silt_volumes *v, struct silt_pool_room *ret,
                        struct silt_error *e);
/* How much sandboxes may still write if `keep` bytes stay free. */
uint64_t silt_pool_room_left(const struct silt_pool_room *r, uint64_t keep);
/* The margin for btrfs itself. */
uint64_t silt_pool_room_margin(const struct silt_pool_room *r);

/* Adds volumes made by a former version to the group. */
void silt_pool_room_gather(const struct silt_volumes *v);
/* Makes the kernel recount the usage of each volume, in the background. */
void silt_pool_room_rescan(const struct silt_volumes *v);
/* Sets the group's limit if it is off by more than 1 MiB. *limit is the current one, initially
 * 0. */
int silt_pool_room_limit(const struct silt_volumes *v, uint64_t left, uint64_t *limit,
                         struct silt_error *e);

/* Whether sparsely used chunks keep others from growing. */
bool silt_pool_room_is_wasted(const struct silt_pool_room *r);
/* Empties one such chunk. Takes seconds, or minutes on a slow disk. */
int silt_pool_room_balance(const struct silt_volumes *v, const struct silt_pool_room *r,
                           struct silt_error *e);
/* Cancels an interrupted balance, which would keep the pool from growing. */
void silt_pool_room_forget_balance(const struct silt_volumes *v);
