/* SPDX-License-Identifier: Apache-2.0 */
/* log: the format of the file that keeps a process's output. It is in the sandbox's state
 * directory, invisible to the guest; silt-priv opens it, silt-init writes it, siltd reads it while
 * it is written. All use pread and pwrite at offsets computed from positions.
 *
 * A position counts bytes of records from the start and never decreases; clients see it as a
 * cursor. Position p is at file offset SILT_LOG_HEAD_SIZE + p % ring_bytes; a record may wrap
 * around the end of the ring. The writer moves `tail` past what it will overwrite, writes the
 * record, then moves `head`. So a reader takes `head`, reads, and then checks `tail` again: what
 * lies before it may have been overwritten during the read.
 *
 * The writer is untrusted: the reader checks and bounds everything. */
#pragma once

#include "wire/agent.h"

enum {
    SILT_LOG_MAGIC = 0x676f6c73,
    SILT_LOG_HEAD_SIZE = 4096,
    SILT_LOG_RING = 16 << 20,       /* per process */
    SILT_LOG_RECORD_MAX = 56 << 10, /* bytes of output in one record */
    SILT_LOG_ALIGN = 8,             /* records start at multiples of this */
    SILT_LOGS_MAX = 1000,           /* per sandbox, including finished processes */
};
#define SILT_LOGS_BYTES (128ULL << 20) /* per sandbox */

struct silt_log_head {
    uint32_t magic;
    uint32_t ended; /* 1: `end` and ended_ms are valid */
    uint64_t ring_bytes;
    uint64_t head;       /* position after the newest record */
    uint64_t tail;       /* position of the oldest record */
    uint64_t dropped[2]; /* bytes of stdout and stderr that are no longer stored, or never were */
    int64_t started_ms, ended_ms; /* wall clock */
    struct silt_agent_end end;
};

enum silt_log_stream {
    SILT_LOG_STDOUT = 1,
    SILT_LOG_STDERR = 2,
    SILT_LOG_GAP = 3, /* not output: `lost` bytes could not be stored (disk full) */
};

/* followed by `len` bytes, then zeros up to the next multiple of SILT_LOG_ALIGN */
struct silt_log_record {
    uint64_t at;     /* its own position, to detect invalid cursors */
    int64_t time_ms; /* wall clock */
    uint64_t lost;   /* SILT_LOG_GAP */
    uint32_t len;
    uint32_t stream;
};
