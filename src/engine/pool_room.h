/* SPDX-License-Identifier: Apache-2.0 */
/* pool_room: how much room the pool has, and that sandboxes leave some of it. Their volumes are
 * members of one quota group (silt_volumes.group), whose limit is what they use plus what is left
 * beyond a margin: btrfs itself, and whoever deletes, always find room, so a full pool does not turn
 * read-only. Runs in silt-priv's keeper. */
#pragma once

#include "engine/volume.h"

struct silt_pool_room {
    bool read_only;
    bool mixed;              /* data and metadata share their chunks */
    uint64_t size, free;     /* as of statfs */
    uint64_t unallocated;    /* given to neither data nor metadata yet */
    uint64_t data_spare;     /* in chunks of data */
    uint64_t metadata_spare; /* in chunks of metadata */
    uint64_t errors;         /* that the disk has reported, ever */
};

int silt_pool_room_look(const struct silt_volumes *v, struct silt_pool_room *ret, struct silt_error *e);
/* What sandboxes may still write when `keep` bytes shall stay free. */
uint64_t silt_pool_room_left(const struct silt_pool_room *r, uint64_t keep);
/* The margin for btrfs itself. */
uint64_t silt_pool_room_margin(const struct silt_pool_room *r);

/* Volumes of a former version join the group. */
void silt_pool_room_gather(const struct silt_volumes *v);
/* *limit is the one that holds, 0 at first: it is set anew when it is off by a mebibyte. */
int silt_pool_room_limit(const struct silt_volumes *v, uint64_t left, uint64_t *limit, struct silt_error *e);

/* Whether chunks that are hardly used keep others from growing. */
bool silt_pool_room_is_wasted(const struct silt_pool_room *r);
/* Empties one such chunk. Takes seconds, or minutes on a slow disk. */
int silt_pool_room_balance(const struct silt_volumes *v, const struct silt_pool_room *r, struct silt_error *e);
/* A balance that was cut off keeps the pool from growing. */
void silt_pool_room_forget_balance(const struct silt_volumes *v);
