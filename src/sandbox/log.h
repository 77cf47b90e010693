/* SPDX-License-Identifier: Apache-2.0 */
/* log: reads the ring file of a process (wire/log.h) while silt-init writes it. Nothing that it says is
 * believed: a liar gets his readers a broken log, and nothing else. Knows no loop and no process. */
#pragma once

#include "base/slice.h"
#include "wire/log.h"

enum { SILT_LOG_BATCH = 64 << 10 }; /* holds the largest record */
#define SILT_LOG_OLDEST UINT64_MAX   /* as a position: where the tail is */

enum silt_log_found {
    SILT_LOG_FOUND,  /* at least one whole record */
    SILT_LOG_DRY,    /* nothing is there yet */
    SILT_LOG_GONE,   /* it was overwritten: head.tail is the oldest that is left */
    SILT_LOG_LATER,  /* the answer waits for the disk, or looks odd: ask again where waiting is fine */
    SILT_LOG_WRONG,  /* no record begins there */
    SILT_LOG_BROKEN, /* the file is not what it should be */
};

struct silt_log_batch {
    struct silt_log_head head; /* as of the fetch */
    uint64_t at;               /* where the next record begins */
    size_t used, len;          /* of bytes */
    char *bytes;               /* borrowed: SILT_LOG_BATCH of them */
};

struct silt_log_piece {
    enum silt_log_stream stream;
    silt_slice bytes; /* borrowed from the batch */
    int64_t time_ms;
    uint64_t lost;  /* SILT_LOG_GAP */
    uint64_t after; /* the cursor behind it */
};

/* A log that nobody has begun to write is an empty one. FOUND, LATER or BROKEN. */
enum silt_log_found silt_log_look(int fd, bool may_wait, struct silt_log_head *ret);
/* Records from `at` on. b->head and b->at are written unless LATER or BROKEN. */
enum silt_log_found silt_log_fetch(int fd, uint64_t at, bool may_wait, struct silt_log_batch *b);
/* 1: a record; 0: no more whole ones here, the next is fetched at b->at; -1: broken. */
int silt_log_next(struct silt_log_batch *b, struct silt_log_piece *ret);
/* What of it is kept. */
uint64_t silt_log_size(const struct silt_log_head *h);
