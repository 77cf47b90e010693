/* SPDX-License-Identifier: Apache-2.0 */
/* parse_thread: parses one long line of an interpreter on a worker thread, since it would block the
 * loop for a tenth of a second. It keeps the line's place in the fair queue until the line is
 * freed, even if the listener has left. */
#pragma once

#include "event/worker.h"
#include "sandbox/context/kernel_protocol.h"
#include "sandbox/core/fair_queue.h"

struct silt_parse_thread;

struct silt_parse_listener {          /* embedded in its user */
    struct silt_parse_thread *thread; /* NULL: idle */
    /* `said` is valid during the call; NULL: the line violates the protocol. */
    void (*on_heard)(struct silt_parse_listener *l, const struct silt_kernel_said *said,
                     const struct silt_error *e);
};

/* Takes line and lane; one line at a time per listener. */
void silt_parse_thread_start(struct silt_worker *threads, struct silt_buf *line,
                             struct silt_fair_queue_turn *lane, struct silt_parse_listener *l);
/* No callback follows; no-op if idle. */
void silt_parse_thread_leave(struct silt_parse_listener *l);
