/* SPDX-License-Identifier: Apache-2.0 */
/* follow: one reader of a process's log: what is there, then what comes, then the end. It never holds a process
 * back unless it is the one that the process was started for, and is told what it missed. */
#pragma once

#include "sandbox/log.h"
#include "sandbox/process.h"

struct silt_follow;

enum silt_gap {
    SILT_GAP_OVERWRITTEN, /* the reader was too slow */
    SILT_GAP_EXPIRED,     /* the cursor it began with was too old */
    SILT_GAP_UNSTORED,    /* there was no room on the disk */
};

struct silt_follow_sink { /* borrowed: must outlive the follow, or stop it; each may stop it */
    /* The log is open: what it holds now. Once, first. */
    void (*opened)(struct silt_follow_sink *sink, const struct silt_log_head *head); /* may be NULL */
    void (*output)(struct silt_follow_sink *sink, const struct silt_log_piece *piece); /* stdout or stderr */
    /* Bytes of output that are not to be had any more. */
    void (*gap)(struct silt_follow_sink *sink, uint64_t bytes, enum silt_gap why, uint64_t cursor);
    void (*idle)(struct silt_follow_sink *sink); /* nothing more now; may be NULL */
    bool (*full)(struct silt_follow_sink *sink); /* true: nothing more until silt_follow_resume */
    /* One of these, once, last. */
    void (*over)(struct silt_follow_sink *sink, uint64_t cursor);
    void (*failed)(struct silt_follow_sink *sink, const struct silt_error *e); /* SILT_INVALID: no such cursor */
};

struct silt_follow_options {
    uint64_t cursor;
    bool from_tail; /* instead of a cursor: the oldest that is kept */
    bool snapshot;  /* up to what is there now; else until the process has ended */
    uint64_t until; /* with snapshot: up to here instead; 0: all that is there now */
    bool hold;      /* the process waits for this one (SILT_START_HOLD) */
};

/* Nothing is called before it has returned. */
struct silt_follow *silt_follow_start(struct silt_process *p, const struct silt_follow_options *o,
                                      struct silt_follow_sink *sink);
void silt_follow_resume(struct silt_follow *f);
void silt_follow_stop(struct silt_follow *f);

/* From process.c. */
void silt_follow_log_is_here(struct silt_process *p, const struct silt_error *e); /* e: it cannot be had */
void silt_follow_wake_all(struct silt_process *p);

/* A cursor may also point behind what we add to the end of a log (row.remark). */
enum { SILT_FOLLOW_REMARK = SILT_LOG_ALIGN };
