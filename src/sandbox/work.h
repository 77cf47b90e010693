/* SPDX-License-Identifier: Apache-2.0 */
/* work: one operation on the files, watches or ports of a sandbox, done by a worker process inside it
 * (wire/worker.h). What the worker says is hostile: here only the sizes of frames are checked. */
#pragma once

#include "base/share.h"
#include "sandbox/sandbox.h"
#include "wire/worker.h"

struct silt_work;

struct silt_work_sink { /* borrowed: must outlive the work, or leave it */
    /* What the worker says; FAILED comes through `failed`. After `last` the work is gone. */
    void (*said)(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body, bool last);
    /* Once, instead of a last `said`. e->sys is the errno inside, where there was one. */
    void (*failed)(struct silt_work_sink *sink, const struct silt_error *e);
    void (*room)(struct silt_work_sink *sink); /* silt_work_feed may go on; NULL: it is never used */
};

enum silt_work_kind {
    SILT_WORK_SHORT, /* files: at most SILT_WORKERS_MAX at once, the others wait their turn */
    SILT_WORK_PACED, /* those that last as long as a client likes: some workers are kept free of them */
    SILT_WORK_LONG,  /* watches and port waits: more than SILT_WORKER_WATCHES_MAX are refused */
};

struct silt_work_request { /* nothing is borrowed afterwards */
    enum silt_work_kind kind;
    uint32_t op;                /* enum silt_worker_op */
    struct silt_worker_ask ask; /* without the lengths */
    silt_slice cwd, path, to, text;
    uint32_t patience_ms; /* silence of the worker beyond this ends it with SILT_TIMEOUT; 0: for ever */
};

enum { SILT_WORK_PATIENCE_MS = 30000 };

/* The sandbox runs. Neither callback comes from inside this call. */
int silt_work_start(struct silt_sandbox *s, const struct silt_work_request *q, struct silt_work_sink *sink,
                    struct silt_work **ret, struct silt_error *e);
/* Before the first bytes: those that are fed will lie in this memory, which is borrowed until the work is gone.
 * They stay as they are until the worker says TAKEN, once for each feed but the last. */
void silt_work_share(struct silt_work *w, const struct silt_share *share);
/* Bytes of an upload, without shared memory at most SILT_FRAME_BODY_MAX of them. False: not taken; again after
 * `room`. The worker's patience begins with the last ones, and while some in shared memory are not used up. */
bool silt_work_feed(struct silt_work *w, silt_slice bytes, bool last);
/* While paused nothing is said and the worker waits; its patience too. */
void silt_work_pause(struct silt_work *w, bool paused);
/* The sink goes: the worker takes back what is half made. */
void silt_work_leave(struct silt_work *w);

/* For this room. */
void silt_work_init(struct silt_sandbox *s);
void silt_work_on_failed(struct silt_sandbox *s, uint64_t number, const struct silt_error *e);
void silt_work_drop_all(struct silt_sandbox *s, const struct silt_error *e); /* nothing runs any more */
void silt_work_forget_all(struct silt_sandbox *s);                           /* the daemon ends */
