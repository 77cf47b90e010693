/* SPDX-License-Identifier: Apache-2.0 */
/* agent: silt-init, PID 1 of one sandbox: what its rooms share. One process, one thread, one loop.
 * It faces code that is hostile and runs as root beside it, so it opens no path that the guest
 * chooses, waits for nobody, and has a maximum for everything. */
#pragma once

#include "agent/channel.h"
#include "agent/child.h"
#include "agent/drain.h"
#include "agent/handle.h"
#include "agent/meter.h"
#include "agent/pace.h"
#include "agent/spawn.h"

struct silt_spare;

struct silt_agent {
    struct silt_loop loop;
    struct silt_channel channel;
    struct silt_children children;
    struct silt_handles handles;
    struct silt_joins joins;
    struct silt_meter meter;
    struct silt_drains drains;
    struct silt_pace pace;
    struct silt_link execs;    /* struct silt_exec */
    struct silt_link sessions; /* struct silt_session */
    struct silt_link purges;   /* that are running */
    struct silt_link workers;  /* worker.c */
    struct silt_link sweeps;   /* sweep.c */
    struct silt_spare *spare;  /* owned */
    struct silt_handle *work_handle; /* borrowed: of all workers; NULL: there was none yet */
    struct silt_timer lonely;  /* runs while there is no peer */
    int folder;                /* /dev/silt */
    uint32_t marks;            /* numbers what shells are asked to do */
    uint32_t sweep;            /* number of the last one: who is born later is not its to end */
};

/* Descriptors as in wire/agent.h. */
int silt_agent_open(struct silt_agent *a, int mode, size_t joins, size_t handles,
                    struct silt_error *e);

/* What siltd asks, by its table. */
void silt_ask_frame(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                    struct silt_parcel *p);

void silt_agent_say_failed(struct silt_agent *a, uint64_t id, const struct silt_error *e);
