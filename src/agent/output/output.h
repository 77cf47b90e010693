/* SPDX-License-Identifier: Apache-2.0 */
/* output: forwards the output of one exec: reads two descriptors as bytes arrive, and either sends
 * the bytes to siltd, as far as its window and the channel allow, or writes them to the log, which
 * siltd reads. Nothing is buffered here: unread output stays in the pipe and blocks its writer. */
#pragma once

#include "agent/output/channel.h"
#include "agent/output/log.h"
#include "agent/output/log_rate.h"

struct silt_tap {
    struct silt_watch watch;
    struct silt_channel_wait wait;
    struct silt_output *outlet; /* borrowed */
    uint32_t stream;            /* 1 stdout, 2 stderr */
    bool ended;                 /* end-of-file: no writer is left */
    size_t owed;                /* bytes that were in the pipe and are not forwarded yet */
};

/* CLOSED --open--> FLOWING --close--> CLOSING --no more output--> CLOSED, on_dry */
enum silt_output_state { SILT_OUTPUT_CLOSED, SILT_OUTPUT_FLOWING, SILT_OUTPUT_CLOSING };

struct silt_output {
    struct silt_loop *loop;       /* borrowed */
    struct silt_channel *channel; /* borrowed */
    uint64_t id;
    enum silt_output_state state;
    uint64_t credit;             /* bytes that siltd still accepts */
    bool dropping;               /* no reader: output is read and discarded */
    struct silt_log_writer *log; /* borrowed; NULL: siltd receives the bytes */
    struct silt_log_rate *pace;  /* borrowed: rate limit of the log */
    uint64_t followed;           /* siltd has read the log up to here */
    bool following;              /* and wants to be notified of more */
    bool holding;                /* unread output must not be overwritten */
    struct silt_tap taps[2];
    struct silt_timer timer;
    int64_t until_ms;
    void (*on_dry)(struct silt_output *o);
    void (*on_moved)(struct silt_output *o);    /* some output was forwarded; may be NULL */
    bool (*is_restless)(struct silt_output *o); /* a remaining process is running right now */
};

void silt_output_init(struct silt_output *o, struct silt_loop *loop, struct silt_channel *channel);
/* The descriptors (err may be -1) are borrowed, non-blocking, and must stay open until this is
 * closed. */
void silt_output_open(struct silt_output *o, uint64_t id, int out, int err);
/* The command is done. Forwards what it wrote, then calls on_dry, possibly before this returns.
 * Other processes that hold the pipe get a moment to finish. */
void silt_output_close(struct silt_output *o);
/* on_dry is not called any more. */
void silt_output_abandon(struct silt_output *o);

/* These may be called at any time, also before open. A log records all output even without a
 * reader; drop ends holding. */
void silt_output_credit(struct silt_output *o, uint64_t bytes);
void silt_output_drop(struct silt_output *o);
void silt_output_renew(struct silt_output *o); /* a new siltd: resets the whole window */
void silt_output_follow(struct silt_output *o, uint64_t position); /* with a log */

/* Forwards what is in the pipes now, as far as allowed; the rest is owed and forwarded later. */
void silt_output_drain(struct silt_output *o);
bool silt_output_owes(const struct silt_output *o); /* while closing: true until it is closed */
