/* SPDX-License-Identifier: Apache-2.0 */
/* agent: the shared state of silt-init, PID 1 of one sandbox. One process, one thread, one event
 * loop. Hostile code runs as root beside it, so it never opens a path that the guest chose, never
 * blocks on the guest, and has a maximum for everything. */
#pragma once

#include "agent/output/channel.h"
#include "agent/spawn/child.h"
#include "agent/output/drain.h"
#include "agent/spawn/handle.h"
#include "agent/spawn/limit_events.h"
#include "agent/output/log_rate.h"
#include "agent/spawn/spawn.h"

struct silt_exec;
struct silt_spare_shell;

struct silt_agent {
    struct silt_loop loop;
    struct silt_channel channel;
    struct silt_children children;
    struct silt_handles handles;
    struct silt_joins joins;
    struct silt_limit_events meter;
    struct silt_drains drains;
    struct silt_log_rate pace;
    struct silt_link execs;          /* struct silt_exec */
    struct silt_link sessions;       /* struct silt_session */
    struct silt_link purges;         /* running kill_trees */
    struct silt_link workers;        /* worker.c */
    struct silt_link sweeps;         /* sweep.c */
    struct silt_spare_shell *spare;  /* owned */
    struct silt_handle *work_handle; /* borrowed: shared by all workers; NULL: none yet */
    struct silt_timer lonely;        /* runs while siltd is not connected */
    int directory;                   /* /dev/silt */
    uint32_t marks;                  /* numbers the requests to shells */
    uint64_t exported_ping;          /* exported.h: siltd waits for this PONG; 0: none */
    uint32_t sweep; /* number of the last sweep: it does not end processes that start later */
    /* Called by an exec that ends: before and after it gives up its handle. */
    void (*on_exec_leaving)(struct silt_exec *x);
    void (*on_exec_left)(struct silt_exec *x);
};

/* Descriptors as described in wire/agent.h. */
int silt_agent_open(struct silt_agent *a, int mode, size_t joins, size_t handles,
                    struct silt_error *e);

/* Dispatches a frame from siltd by its table. */
void silt_dispatch_frame(struct silt_channel *c, const struct silt_frame *f, size_t body_len,
                         struct silt_parcel *p);
