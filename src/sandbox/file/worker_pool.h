/* SPDX-License-Identifier: Apache-2.0 */
/* worker_pool: operations on the files, watches or ports of a sandbox, each done by a worker
 * process inside it (wire/worker.h). siltd owns the pool, one per sandbox. Workers are untrusted:
 * only the sizes of their frames are checked here, the contents by the sink. */
#pragma once

#include "base/share.h"
#include "sandbox/core/sandbox.h"
#include "wire/worker.h"

struct silt_work;

struct silt_work_sink { /* borrowed: must outlive the work, or leave it */
    /* A frame from the worker; FAILED goes to `failed` instead. After `last` the work is freed. */
    void (*said)(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                 bool last);
    /* Once, instead of a last `said`. e->sys is the errno inside the sandbox, if there was one. */
    void (*failed)(struct silt_work_sink *sink, const struct silt_error *e);
    /* silt_work_feed may continue; NULL if that is never used. */
    void (*room)(struct silt_work_sink *sink);
};

enum silt_work_kind {
    SILT_WORK_SHORT, /* files: at most SILT_WORKERS_MAX at once, others queue */
    SILT_WORK_PACED, /* as slow as their client: some workers are reserved for SHORT */
    SILT_WORK_LONG,  /* watches and port waits: refused past SILT_WORKER_WATCHES_MAX */
};

struct silt_work_request { /* copied by silt_work_start */
    enum silt_work_kind kind;
    uint32_t op;                /* enum silt_worker_op */
    struct silt_worker_ask ask; /* without the lengths */
    silt_slice cwd, path, to, text;
    /* A worker silent for longer is ended with SILT_TIMEOUT; 0: no limit. */
    uint32_t patience_ms;
};

enum { SILT_WORK_PATIENCE_MS = 30000 };

/* The sandbox must run. No callback is called before it returns. */
int silt_work_start(struct silt_sandbox *s, const struct silt_work_request *q,
                    struct silt_work_sink *sink, struct silt_work **ret, struct silt_error *e);
/* Call before the first feed: fed bytes will lie in this memory, which is borrowed until the work
 * is freed. They must not change until the worker says TAKEN, once per feed except the last. */
void silt_work_share(struct silt_work *w, const struct silt_share *share);
/* Upload data; without shared memory at most SILT_FRAME_BODY_MAX bytes. False: not accepted, retry
 * after `room`. The worker's timeout runs from the last bytes on, and while it has not used up
 * bytes in shared memory. */
bool silt_work_feed(struct silt_work *w, silt_slice bytes, bool last);
/* While paused, the sink is not called, the worker waits and its timeout is suspended. */
void silt_work_pause(struct silt_work *w, bool paused);
/* Detaches the sink: the worker undoes a partial result. */
void silt_work_leave(struct silt_work *w);

/* For this room. */

extern const struct silt_facet silt_work_facet;
