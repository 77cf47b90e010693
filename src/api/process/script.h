/* SPDX-License-Identifier: Apache-2.0 */
/* script: a short command of ours inside a sandbox, on behalf of a request, whose output siltd
 * reads. Runs in siltd and belongs to the request; if the client leaves, the command runs on
 * unread. What it prints comes from inside and may be anything. */
#pragma once

#include "api/core/api.h"
#include "sandbox/core/exec.h"

struct silt_script;

/* How it ended; valid during the call. */
struct silt_script_end {
    int code;            /* the exit code; -1: it could not run, see `error` */
    silt_slice out, err; /* cut at the bounds */
    bool cut;            /* there was more output */
    bool timed_out;      /* by its timeout */
    bool shell_ended;    /* the session's shell is gone */
    struct silt_error error;
};

struct silt_script_wish {
    struct silt_session *session; /* NULL: none */
    bool foreground;              /* in the session's shell itself */
    silt_slice text;
    uint32_t timeout_ms;
    size_t out_max;
    /* Must answer the request. */
    void (*done)(struct silt_call *c, const struct silt_script_end *end);
};

/* The last step of a call. */
void silt_script_run(struct silt_call *c, const struct silt_script_wish *w);
