/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: who is in the control groups of a sandbox and has no record there, and their end. */
#pragma once

#include "sandbox/sandbox.h"

enum { SILT_SWEEP_LATE_MS = 10000 }; /* after its grace a sweep is answered; its agent is sooner */

struct silt_found {
    const char *kind;    /* "command", "leftover", "context" or "terminal": what it was found in the group of */
    const char *session; /* whose that was; NULL: none, or it is gone */
    int32_t pid;
    int64_t started_ms;
    silt_slice command; /* its command line, cut: the guest's bytes */
};

struct silt_sweep { /* the caller's; it may leave before */
    struct silt_link link;
    struct silt_sandbox *sandbox; /* borrowed, held; NULL: it is over */
    uint64_t number;
    int32_t pid; /* the only one; 0: all */
    uint32_t told;
    void (*on_found)(struct silt_sweep *w, const struct silt_found *f);
    /* Once, last. `swept` is NULL when it could not be done; `e` tells why. */
    void (*on_done)(struct silt_sweep *w, const struct silt_agent_swept *swept, const struct silt_error *e);
};

/* As SILT_AGENT_SWEEP says. Cells of contexts are interrupted when all is to end. False: nothing runs there; nobody is called. */
bool silt_sweep_start(struct silt_sandbox *s, const struct silt_agent_sweep *how, struct silt_sweep *w);
void silt_sweep_leave(struct silt_sweep *w); /* fine when it is over */
/* The rest is for this room. */
void silt_sweep_on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len);
void silt_sweep_drop_all(struct silt_sandbox *s, const struct silt_error *e);
