/* SPDX-License-Identifier: Apache-2.0 */
/* run_log: the events of one run of code, kept for clients that resume its stream. Owned by the
 * sandbox, in siltd, in memory only: a new siltd knows none. A log keeps the newest events, at most
 * SILT_RUN_LOG_MAX bytes of them, until a while after the end of the run. When the logs of the
 * sandbox or of all sandboxes become too large, those of the oldest ended runs go first. */
#pragma once

#include "sandbox/context/run_queue.h"

enum {
    SILT_RUN_LOG_MAX = 16 << 20,
    SILT_RUN_LOGS_EACH_MAX = 64 << 20, /* of one sandbox */
    SILT_RUN_LOGS_MAX = 256 << 20,     /* of all sandboxes */
    SILT_RUN_LOG_KEPT_MS = 600000,     /* after the end of the run */
    SILT_RUN_ID_SIZE = 32,
    SILT_RUN_READERS_MAX = 16, /* of one run */
};

struct silt_run_log;

/* The client that started the run writes the log. */
struct silt_run_log_owner {
    /* siltd is exiting and the run has not ended: frees it without callbacks. */
    void (*forget)(struct silt_run_log_owner *o);
};

struct silt_run_reader { /* embedded; call silt_run_reader_leave before it is freed */
    struct silt_link link;
    struct silt_run_log *log; /* borrowed; it stays while it has readers */
    struct silt_link *at;     /* the event before `next`; stale once that is no longer kept */
    uint64_t next;            /* number of the event it reads next */
    void (*on_more)(struct silt_run_reader *r); /* an event was added, or the run has ended */
};

/* Of a run that has begun. `run` and `owner` are borrowed until silt_run_log_end. The client is
 * there until silt_run_log_leave. */
struct silt_run_log *silt_run_log_new(struct silt_context *c, struct silt_code_run *run,
                                      struct silt_run_log_owner *owner);
const char *silt_run_log_id(const struct silt_run_log *l);
/* NULL: unknown, or no longer kept. */
struct silt_run_log *silt_run_log_find(struct silt_sandbox *s, silt_slice context, silt_slice run);
/* Number of the newest event; 0: none yet. */
uint64_t silt_run_log_last(const struct silt_run_log *l);
/* Copies the event, which has the number silt_run_log_last + 1. */
void silt_run_log_add(struct silt_run_log *l, silt_slice event);
/* The client has left; without any reader the run gets no input. */
void silt_run_log_leave(struct silt_run_log *l);
bool silt_run_log_is_read(const struct silt_run_log *l);   /* by a client, or a reader */
bool silt_run_log_is_behind(const struct silt_run_log *l); /* a reader has not read everything */
void silt_run_log_end(struct silt_run_log *l);

/* Continues after event `cursor`. SILT_INVALID: there is no such event yet; SILT_LIMIT: too many
 * readers. */
int silt_run_reader_init(struct silt_run_reader *r, struct silt_run_log *l, uint64_t cursor,
                         struct silt_error *e);
/* False: everything has been read. The slice is borrowed until the next call on the log. `ret_lost`
 * events are gone; if it is not 0, the slice is empty. */
bool silt_run_reader_next(struct silt_run_reader *r, silt_slice *ret, uint64_t *ret_lost);
bool silt_run_reader_is_done(const struct silt_run_reader *r);  /* and nothing will follow */
bool silt_run_reader_is_ended(const struct silt_run_reader *r); /* the run has ended */
/* The run goes on if it waited for this reader. */
void silt_run_reader_resume(struct silt_run_reader *r);
void silt_run_reader_leave(struct silt_run_reader *r);

extern const struct silt_facet silt_run_log_facet;
