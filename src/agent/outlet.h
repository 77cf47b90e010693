/* SPDX-License-Identifier: Apache-2.0 */
/* outlet: the output of one exec on its way to siltd: two descriptors that are read as bytes
 * arrive, as far as siltd's window and the channel allow, or into its log, which siltd reads.
 * Nothing is kept here: what is not read yet stays in the pipe and holds its writer back. */
#pragma once

#include "agent/channel.h"
#include "agent/log.h"
#include "agent/pace.h"

struct silt_tap {
    struct silt_watch watch;
    struct silt_channel_wait wait;
    struct silt_outlet *outlet; /* borrowed */
    uint32_t stream;            /* 1 stdout, 2 stderr */
    bool ended;                 /* end-of-file: nobody can write any more */
    size_t owed;                /* closing: bytes that were there and must still go */
};

/*   CLOSED --open--> FLOWING --close--> CLOSING --nothing more comes--> CLOSED, on_dry */
enum silt_outlet_state { SILT_OUTLET_CLOSED, SILT_OUTLET_FLOWING, SILT_OUTLET_CLOSING };

struct silt_outlet {
    struct silt_loop *loop;       /* borrowed */
    struct silt_channel *channel; /* borrowed */
    uint64_t id;
    enum silt_outlet_state state;
    uint64_t credit;             /* bytes that siltd still takes */
    bool dropping;               /* nobody reads: let it run free */
    struct silt_log_writer *log; /* borrowed; NULL: siltd gets the bytes themselves */
    struct silt_pace *pace;      /* borrowed: of the log */
    uint64_t followed;           /* siltd has read the log up to here */
    bool following;              /* and wants to know when there is more */
    bool holding;                /* what it has not read must stay */
    struct silt_tap taps[2];
    struct silt_timer timer;
    int64_t until_ms;
    void (*on_dry)(struct silt_outlet *o);
    bool (*is_restless)(struct silt_outlet *o); /* whoever was left behind is at work just now */
};

void silt_outlet_init(struct silt_outlet *o, struct silt_loop *loop, struct silt_channel *channel);
/* The descriptors (err may be -1) are borrowed, non-blocking, and stay open until the outlet is closed again. */
void silt_outlet_open(struct silt_outlet *o, uint64_t id, int out, int err);
/* The command is done. What it wrote still goes; then on_dry, possibly before this returns. Who
 * else holds the other end has a moment to finish, too. */
void silt_outlet_close(struct silt_outlet *o);
/* No on_dry comes any more. */
void silt_outlet_abandon(struct silt_outlet *o);

/* These may come at any time, also before it is open. A log takes all output also when nobody reads
 * it; dropping ends the holding. */
void silt_outlet_credit(struct silt_outlet *o, uint64_t bytes);
void silt_outlet_drop(struct silt_outlet *o);
void silt_outlet_renew(struct silt_outlet *o); /* a new siltd: the whole window again */
void silt_outlet_follow(struct silt_outlet *o, uint64_t position); /* with a log */
