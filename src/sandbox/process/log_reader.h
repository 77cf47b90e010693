/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader: reads the ring file of a process's log (wire/log.h) while silt-init writes it. The
 * contents are untrusted: a forged file yields a broken log and nothing worse. Independent of the
 * event loop and of processes. */
#pragma once

#include "base/slice.h"
#include "wire/log.h"

enum { SILT_LOG_BATCH = 64 << 10 }; /* fits the largest record */
#define SILT_LOG_OLDEST UINT64_MAX  /* as a position: the tail */

enum silt_log_reader_found {
    SILT_LOG_FOUND, /* at least one whole record */
    SILT_LOG_DRY,   /* nothing there yet */
    SILT_LOG_GONE,  /* overwritten: head.tail is the oldest record left */
    /* Not in memory yet, or inconsistent: ask again from where blocking is allowed. */
    SILT_LOG_LATER,
    SILT_LOG_WRONG,  /* no record starts there */
    SILT_LOG_BROKEN, /* the file is invalid */
};

struct silt_log_reader_batch {
    struct silt_log_head head; /* as of the fetch */
    uint64_t at;               /* start of the next record */
    size_t used, len;          /* bytes */
    char *bytes;               /* borrowed, SILT_LOG_BATCH bytes */
};

struct silt_log_reader_piece {
    enum silt_log_stream stream;
    silt_slice bytes; /* borrowed from the batch */
    int64_t time_ms;
    uint64_t lost;  /* SILT_LOG_GAP */
    uint64_t after; /* cursor past this record */
};

/* An unwritten log counts as empty. FOUND, LATER or BROKEN. */
enum silt_log_reader_found silt_log_reader_look(int fd, bool may_wait, struct silt_log_head *ret);
/* Fetches records from `at` on. Sets b->head and b->at unless it returns LATER or BROKEN. */
enum silt_log_reader_found silt_log_reader_fetch(int fd, uint64_t at, bool may_wait,
                                                 struct silt_log_reader_batch *b);
/* 1: a record; 0: no further whole record, fetch again at b->at; -1: broken. */
int silt_log_reader_next(struct silt_log_reader_batch *b, struct silt_log_reader_piece *ret);
/* Bytes of output that are still kept. */
uint64_t silt_log_reader_size(const struct silt_log_head *h);
