/* SPDX-License-Identifier: Apache-2.0 */
/* log_follower: one reader of a process's log: existing output, then new output, then the end. A
 * reader never slows a process down, except the one the process was started for; output that a
 * reader missed is reported to it as a gap. Runs in siltd and keeps the process's record until it
 * is over, has failed or is stopped. */
#pragma once

#include "sandbox/process/log_reader.h"
#include "sandbox/process/process.h"

struct silt_log_follower;

enum silt_gap {
    SILT_GAP_OVERWRITTEN, /* the reader was too slow */
    SILT_GAP_EXPIRED,     /* its first cursor was too old */
    SILT_GAP_UNSTORED,    /* the disk was full */
};

/* Borrowed: must outlive the follower or stop it. Every callback may stop it. */
struct silt_log_follower_sink {
    /* The log is open; `head` is its present extent. Once, first. */
    void (*opened)(struct silt_log_follower_sink *sink,
                   const struct silt_log_head *head); /* may be NULL */
    void (*output)(struct silt_log_follower_sink *sink,
                   const struct silt_log_reader_piece *piece); /* stdout or stderr */
    /* Output that is no longer available. */
    void (*gap)(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                uint64_t cursor);
    void (*idle)(struct silt_log_follower_sink *sink); /* caught up; may be NULL */
    /* True: pause until silt_log_follower_resume. */
    bool (*full)(struct silt_log_follower_sink *sink);
    /* Exactly one of these, once, as the last callback. */
    void (*over)(struct silt_log_follower_sink *sink, uint64_t cursor);
    /* SILT_INVALID: no such cursor. */
    void (*failed)(struct silt_log_follower_sink *sink, const struct silt_error *e);
};

struct silt_log_follower_options {
    uint64_t cursor;
    bool from_tail; /* start at the oldest record instead of a cursor */
    bool snapshot;  /* stop at the present end instead of the process's end */
    uint64_t until; /* with snapshot: stop here; 0: the present end */
    bool hold;      /* the process waits for this reader (SILT_START_HOLD) */
};

/* No callback is called before it returns. */
struct silt_log_follower *silt_log_follower_start(struct silt_process *p,
                                                  const struct silt_log_follower_options *o,
                                                  struct silt_log_follower_sink *sink);
void silt_log_follower_resume(struct silt_log_follower *f);
void silt_log_follower_stop(struct silt_log_follower *f);

/* Called by process.c. */
/* `e`: the log could not be opened. */
void silt_log_follower_log_is_here(struct silt_process *p, const struct silt_error *e);
void silt_log_follower_wake_all(struct silt_process *p);
void silt_log_follower_wake_flushed(struct silt_process *p);

/* A cursor may also point past the remark that siltd appends to a log (row.remark). */
enum { SILT_LOG_FOLLOWER_REMARK = SILT_LOG_ALIGN };
