/* SPDX-License-Identifier: Apache-2.0 */
/* flush: answers whether all output an exec with a log has written so far is in the log.
 *
 *   IDLE --asked--> BEGINNING --the exec has begun--> DRAINING --its pipes are read--> IDLE (PONG)
 *
 * An exec has begun once all its processes are waiting or have ended: a short command has then
 * written its output. A computing exec gets a little CPU time for that, once, counted from its
 * start. If it ends first, ENDED is sent instead of PONG. */
#pragma once

#include "event/loop.h"

struct silt_exec;

enum silt_flush_state { SILT_FLUSH_IDLE, SILT_FLUSH_BEGINNING, SILT_FLUSH_DRAINING };

struct silt_flush {
    enum silt_flush_state state;
    struct silt_timer timer;
    int64_t pause_ms; /* until the next check */
    int64_t until_ms; /* after this the exec counts as begun in any case */
    unsigned quiet;   /* checks in a row that found it waiting */
    bool begun;
};

enum {
    SILT_FLUSH_WORK_MS = 50,    /* CPU time after which an exec has begun */
    SILT_FLUSH_BEGIN_MS = 1000, /* time limit for that: it may not get a CPU */
};

void silt_flush_started(struct silt_exec *x);
void silt_flush_ask(struct silt_exec *x);   /* a second request before the answer starts over */
void silt_flush_stop(struct silt_exec *x);  /* no answer is sent any more */
void silt_flush_moved(struct silt_exec *x); /* some of its output went into the log */
