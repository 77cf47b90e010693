/* SPDX-License-Identifier: Apache-2.0 */
/* cell: one piece of code in a context, from its place in the queue to its end. It goes on when whoever
 * asked for it leaves. */
#pragma once

#include "sandbox/context.h"

enum silt_cell_cause {
    SILT_CELL_FINE,
    SILT_CELL_TIMEOUT,
    SILT_CELL_FLOOD, /* more output than a run may have */
};

struct silt_cell_end {
    enum silt_cell_cause cause;
    uint32_t count;                 /* execution count; 0: it never began, or its context died */
    const struct silt_death *death; /* its context died of it; else NULL */
    uint64_t limit;                 /* TIMEOUT: ms; FLOOD: bytes */
};

struct silt_cell_sink { /* borrowed: must outlive the run, or leave it */
    void (*began)(struct silt_cell_sink *sink); /* may be NULL */
    void (*output)(struct silt_cell_sink *sink, int stream, silt_slice bytes);
    void (*result)(struct silt_cell_sink *sink, const struct silt_kernel_said *said);
    void (*error)(struct silt_cell_sink *sink, const struct silt_kernel_said *said);
    /* The code asks for a line of input, once until it is answered. NULL: nobody ever answers. */
    void (*asked)(struct silt_cell_sink *sink, const struct silt_kernel_said *said);
    bool (*full)(struct silt_cell_sink *sink); /* then nothing comes until silt_cell_resume */
    /* Exactly one of these two, once, last. */
    void (*ended)(struct silt_cell_sink *sink, const struct silt_cell_end *end);
    /* It never began. `death` is its context's, if that is why; else NULL. */
    void (*failed)(struct silt_cell_sink *sink, const struct silt_error *e, const struct silt_death *death);
};

struct silt_cell;

/* Copies the code. SILT_LIMIT when too many wait; SILT_GONE when the context is dead. timeout_ms 0: the
 * context's. */
int silt_cell_start(struct silt_context *c, silt_slice code, uint32_t timeout_ms, struct silt_cell_sink *sink,
                   struct silt_cell **ret, struct silt_error *e);
void silt_cell_leave(struct silt_cell *r);
void silt_cell_resume(struct silt_cell *r);
/* The answer to `asked`; false: it has not asked. */
bool silt_cell_answer(struct silt_cell *r, silt_slice text);
bool silt_cell_answer_in(struct silt_context *c, silt_slice text); /* of the one that is under way */

/* For context.c. */
void silt_cell_on_line(struct silt_context *c, const struct silt_kernel_said *said);
void silt_cell_on_output(struct silt_context *c, int stream, silt_slice bytes);
bool silt_cell_is_full(struct silt_context *c);
void silt_cell_begin_next(struct silt_context *c); /* when it is idle */
void silt_cell_on_time(struct silt_context *c);
/* The process is gone: the one under way learns why, the others that they never began. */
void silt_cell_end_all(struct silt_context *c, const struct silt_error *e);
void silt_cell_forget_all(struct silt_context *c); /* the daemon ends: nobody is told */
