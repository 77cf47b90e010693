/* SPDX-License-Identifier: Apache-2.0 */
/* log: the file that a process's output is kept in. It lies in the sandbox's state folder, outside of
 * the guest's view; silt-priv opens it, silt-init writes it, siltd reads it while it is written. All
 * through pread and pwrite, at places that follow from positions.
 *
 * A position counts bytes of records since the beginning and never goes back; it is what callers know
 * as a cursor. Position p lies in the file at SILT_LOG_HEAD_SIZE + p % ring_bytes; a record may go
 * over the end of the ring. Writing is: move `tail` behind what is going to be overwritten, write the
 * record, move `head`. So a reader takes `head`, reads, and looks at `tail` again: what lies before it
 * may have been overwritten while it was read.
 *
 * The writer is hostile: whatever is read here is bounded and checked by the reader. */
#pragma once

#include "wire/agent.h"

enum {
    SILT_LOG_MAGIC = 0x676f6c73,
    SILT_LOG_HEAD_SIZE = 4096,
    SILT_LOG_RING = 16 << 20,      /* of one process */
    SILT_LOG_RECORD_MAX = 56 << 10, /* bytes of output in one record */
    SILT_LOG_ALIGN = 8,            /* records begin at multiples of this */
    SILT_LOGS_MAX = 1000,          /* of one sandbox, finished ones included */
};
#define SILT_LOGS_BYTES (128ULL << 20) /* of one sandbox */

struct silt_log_head {
    uint32_t magic;
    uint32_t ended;         /* 1: `end` and ended_ms hold */
    uint64_t ring_bytes;
    uint64_t head;          /* position behind the newest record */
    uint64_t tail;          /* position of the oldest one */
    uint64_t dropped[2];    /* bytes of stdout and stderr that are kept no more, or never were */
    int64_t started_ms, ended_ms; /* wall clock */
    struct silt_agent_end end;
};

enum silt_log_stream {
    SILT_LOG_STDOUT = 1,
    SILT_LOG_STDERR = 2,
    SILT_LOG_GAP = 3, /* no output: as many bytes as `lost` could not be stored (disk full) */
};

struct silt_log_record { /* `len` bytes follow, then zeros up to the next multiple of SILT_LOG_ALIGN */
    uint64_t at;      /* its own position: a cursor that points elsewhere is found out */
    int64_t time_ms;  /* wall clock */
    uint64_t lost;    /* SILT_LOG_GAP */
    uint32_t len;
    uint32_t stream;
};
