/* SPDX-License-Identifier: Apache-2.0 */
/* run_queue: code executions of a context, from queueing to the end. Owned by the context, in
 * siltd. A run continues when its client leaves; it fails with its context, on a timeout or with
 * too much output. */
#pragma once

#include "sandbox/context/context.h"

enum silt_code_run_cause {
    SILT_CODE_RUN_FINE,
    SILT_CODE_RUN_TIMEOUT,
    SILT_CODE_RUN_FLOOD, /* output limit exceeded */
};

struct silt_code_run_end {
    enum silt_code_run_cause cause;
    uint32_t count;                 /* execution count; 0: never started, or its context died */
    const struct silt_death *death; /* its context died of it; otherwise NULL */
    uint64_t limit;                 /* TIMEOUT: ms; FLOOD: bytes */
};

struct silt_code_run_sink { /* borrowed: must outlive the run, or leave it */
    void (*began)(struct silt_code_run_sink *sink); /* may be NULL */
    void (*output)(struct silt_code_run_sink *sink, int stream, silt_slice bytes);
    void (*result)(struct silt_code_run_sink *sink, const struct silt_kernel_said *said);
    void (*error)(struct silt_code_run_sink *sink, const struct silt_kernel_said *said);
    /* The code wants a line of input; once until answered. NULL: input is never available. */
    void (*asked)(struct silt_code_run_sink *sink, const struct silt_kernel_said *said);
    /* True: pause until silt_code_run_resume. */
    bool (*full)(struct silt_code_run_sink *sink);
    /* Exactly one of these two is called, once, as the last callback. */
    void (*ended)(struct silt_code_run_sink *sink, const struct silt_code_run_end *end);
    /* It never started. `death`: its context's, if that is why; otherwise NULL. */
    void (*failed)(struct silt_code_run_sink *sink, const struct silt_error *e,
                   const struct silt_death *death);
};

struct silt_code_run;

/* Copies the code. SILT_LIMIT if too many are queued; SILT_GONE if the context is dead. timeout_ms
 * 0: the context's. */
int silt_code_run_start(struct silt_context *c, silt_slice code, uint32_t timeout_ms,
                        struct silt_code_run_sink *sink, struct silt_code_run **ret,
                        struct silt_error *e);
void silt_code_run_leave(struct silt_code_run *r);
void silt_code_run_resume(struct silt_code_run *r);
/* Replies to `asked`; false: no input was requested. */
bool silt_code_run_answer(struct silt_code_run *r, silt_slice text);
/* For the run that is executing. */
bool silt_code_run_answer_in(struct silt_context *c, silt_slice text);

/* For context.c. */
void silt_code_run_on_line(struct silt_context *c, const struct silt_kernel_said *said);
void silt_code_run_on_output(struct silt_context *c, int stream, silt_slice bytes);
bool silt_code_run_is_full(struct silt_context *c);
void silt_code_run_begin_next(struct silt_context *c); /* when idle */
void silt_code_run_on_time(struct silt_context *c);
/* The process is gone: the executing run gets the reason, queued ones an error that they never
 * started. */
void silt_code_run_end_all(struct silt_context *c, const struct silt_error *e);
void silt_code_run_forget_all(struct silt_context *c); /* siltd is exiting: no callbacks */
