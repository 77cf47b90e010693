/* SPDX-License-Identifier: Apache-2.0 */
/* port_wait: waits until a port inside a sandbox answers, or until the process expected to open it
 * has ended. A worker in the sandbox probes the port; the caller owns the wait. */
#pragma once

#include "sandbox/process/process.h"
#include "sandbox/file/worker_pool.h"

struct silt_port_request { /* copied by silt_port_wait_start */
    uint16_t port;
    bool http;                       /* else a TCP connection is enough */
    silt_slice path;                 /* http */
    uint32_t status_min, status_max; /* http */
    uint32_t interval_ms;            /* between requests that got another status */
    struct silt_process *process;    /* must not have ended; NULL: none */
};

struct silt_port_wait { /* embedded in its user; finished after a callback or leave */
    void (*reached)(struct silt_port_wait *w, uint32_t status); /* 0: not http */
    void (*exited)(struct silt_port_wait *w, int32_t code);     /* -1: unknown */
    void (*failed)(struct silt_port_wait *w, const struct silt_error *e);
    /* private */
    struct silt_work_sink sink;
    struct silt_work *work;
    struct silt_process_watch watch;
};

/* The sandbox must run. No callback is called before it returns, and none at all if it fails. */
int silt_port_wait_start(struct silt_port_wait *w, struct silt_sandbox *s,
                         const struct silt_port_request *q, struct silt_error *e);
void silt_port_wait_leave(struct silt_port_wait *w); /* no-op if finished or never started */
