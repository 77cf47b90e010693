/* SPDX-License-Identifier: Apache-2.0 */
/* port: waits until something inside a sandbox answers on a port, or the process that should is
 * over. */
#pragma once

#include "sandbox/process.h"
#include "sandbox/work.h"

struct silt_port_request { /* nothing is borrowed afterwards */
    uint16_t port;
    bool http;                       /* else a connection is enough */
    silt_slice path;                 /* http */
    uint32_t status_min, status_max; /* http */
    uint32_t interval_ms;            /* between requests that got another status */
    struct silt_process *process;    /* NULL: none; it is not over */
};

struct silt_port_wait { /* embedded in what waits; after one of the callbacks, or leave, it is over
                         */
    void (*reached)(struct silt_port_wait *w, uint32_t status); /* 0: not http */
    void (*exited)(struct silt_port_wait *w, int32_t code);     /* -1: unknown */
    void (*failed)(struct silt_port_wait *w, const struct silt_error *e);
    /* ours */
    struct silt_work_sink sink;
    struct silt_work *work;
    struct silt_process_watch watch;
};

/* The sandbox runs. No callback comes from inside this call. When it fails none comes at all. */
int silt_port_wait_start(struct silt_port_wait *w, struct silt_sandbox *s,
                         const struct silt_port_request *q, struct silt_error *e);
void silt_port_wait_leave(struct silt_port_wait *w); /* fine when it is over, or never began */
