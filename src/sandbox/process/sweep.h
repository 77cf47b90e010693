/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: lists or ends processes in a sandbox's control groups that have no record of their own,
 * such as children left by commands. The agent does the work; the caller owns the sweep and its
 * deadline. Fails if the agent refuses or the sandbox ends. */
#pragma once

#include "sandbox/core/sandbox.h"

enum {
    SILT_SWEEP_LATE_MS = 10000
}; /* deadline for callers, past the grace; the agent answers sooner */

struct silt_found {
    /* The kind of control group: "command", "leftover", "context" or "terminal". */
    const char *kind;
    const char *session; /* the session of that group; NULL: none, or gone */
    uint32_t count;      /* 1; more: processes of which nothing else is known */
    int32_t pid;         /* 0: unknown */
    int64_t started_ms;
    silt_slice command; /* truncated command line; untrusted bytes of the guest */
};

struct silt_sweep { /* owned by the caller, which may leave early */
    struct silt_link link;
    struct silt_sandbox *sandbox; /* borrowed, held; NULL: finished */
    uint64_t number;
    int32_t pid; /* only this one; 0: all */
    uint32_t told;
    void (*on_found)(struct silt_sweep *w, const struct silt_found *f);
    /* Once, last. `swept` is NULL on failure, with the reason in `e`. */
    void (*on_done)(struct silt_sweep *w, const struct silt_agent_swept *swept,
                    const struct silt_error *e);
};

/* See SILT_AGENT_SWEEP. When everything is to end, running cells of contexts are interrupted.
 * False: nothing runs there and no callback follows. */
bool silt_sweep_start(struct silt_sandbox *s, const struct silt_agent_sweep *how,
                      struct silt_sweep *w);
void silt_sweep_leave(struct silt_sweep *w); /* no-op if finished */

extern const struct silt_facet silt_sweep_facet;
