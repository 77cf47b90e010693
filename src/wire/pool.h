/* SPDX-License-Identifier: Apache-2.0 */
/* pool: how the disk pool is doing. silt-priv's keeper writes this struct to `<run>/pool` at least
 * once a second; siltd reads it. One that is not written any more tells something, too. */
#pragma once

#include <stdint.h>

enum { SILT_POOL_MAGIC = 0x53494c50, SILT_POOL_BUSY_MS = 600000, SILT_POOL_SILENT_MS = 15000 };

enum silt_pool_state {
    SILT_POOL_OK,
    SILT_POOL_LOW,       /* the disk is at its reserve: the pool does not grow */
    SILT_POOL_FULL,      /* writes of sandboxes fail */
    SILT_POOL_FAILING,   /* its disk has reported errors */
    SILT_POOL_READ_ONLY, /* btrfs has given up, or could only be mounted so */
    SILT_POOL_SILENT,    /* siltd's finding: the keeper does not get an answer from it */
    SILT_POOL_UNKNOWN,   /* siltd's: no keeper has looked at it yet */
    SILT_POOL_STATE_MAX
};

struct silt_pool_status {
    uint32_t magic;
    uint32_t state;  /* enum silt_pool_state */
    uint32_t native; /* the state folder is on btrfs: there is no pool file */
    uint32_t busy;   /* it is being balanced: the next status comes when that is done */
    uint64_t size, max; /* of the file system now, and what it may grow to */
    uint64_t left;      /* what sandboxes can still write */
    uint64_t disk_free, reserve; /* of the disk of the state folder */
    uint64_t errors;
    int64_t at_ms; /* on the monotonic clock */
};
