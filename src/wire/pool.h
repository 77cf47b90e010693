/* SPDX-License-Identifier: Apache-2.0 */
/* pool: the status of the disk pool. silt-priv's keeper writes this struct to `<run>/pool` at least
 * once a second; siltd reads it. An outdated status means that the keeper is stuck. */
#pragma once

#include <stdint.h>

enum { SILT_POOL_MAGIC = 0x53494c50, SILT_POOL_BUSY_MS = 600000, SILT_POOL_SILENT_MS = 15000 };

enum silt_pool_state {
    SILT_POOL_OK,
    SILT_POOL_LOW,       /* the disk is at its reserve: the pool does not grow */
    SILT_POOL_FULL,      /* sandboxes cannot write any more */
    SILT_POOL_FAILING,   /* its disk has reported errors */
    SILT_POOL_READ_ONLY, /* btrfs went read-only, or could only be mounted read-only */
    SILT_POOL_SILENT,    /* set by siltd: the status is outdated, the keeper is stuck */
    SILT_POOL_UNKNOWN,   /* set by siltd: no status was written yet */
    SILT_POOL_STATE_MAX
};

struct silt_pool_status {
    uint32_t magic;
    uint32_t state;              /* enum silt_pool_state */
    uint32_t native;             /* the state directory is on btrfs: there is no pool file */
    uint32_t busy;               /* a balance is running: the next status comes when it is done */
    uint64_t size, max;          /* current and maximum size of the file system */
    uint64_t left;               /* bytes that sandboxes can still write */
    uint64_t disk_free, reserve; /* of the disk of the state directory */
    uint64_t errors;
    int64_t at_ms; /* monotonic clock */
};
