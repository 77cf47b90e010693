/* SPDX-License-Identifier: Apache-2.0 */
/* prestarted: interpreters already started in a sandbox for its next contexts. A Node is started
 * after the first JavaScript or TypeScript context, and the next such context takes it. A Python is
 * started after the first Python context that no zygote could serve because the image has packages
 * of its own; later ones are forked from it. They count towards the sandbox's memory, end with its
 * processes and do not keep it awake. They are lost when siltd exits, since only siltd holds their
 * pipes. */
#pragma once

#include "sandbox/core/exec.h"
#include "sandbox/context/kernel_conn.h"

struct silt_prestarted_taken {
    uint64_t number;
    int fds[SILT_KERNEL_FDS]; /* our ends; taken by the caller */
    struct silt_exec *exec;
};

/* A context of this language is ready: prestart one for the next. */
void silt_prestarted_want(struct silt_sandbox *s, enum silt_language language);
/* A Python context had to be started: prestart one to fork the next from. */
void silt_prestarted_want_python(struct silt_sandbox *s);
/* The exec number that a Python context can be forked from; 0: none. The caller reports the outcome
 * in `good`. */
uint64_t silt_prestarted_to_fork(struct silt_sandbox *s);
void silt_prestarted_on_forked(struct silt_sandbox *s, uint64_t number, bool good);
/* Takes one for a context with these variables, added to the sandbox's; `sink` becomes that of its
 * exec. False: none there, or a variable affects program start. It may exit silently; then start a
 * process. */
bool silt_prestarted_take(struct silt_sandbox *s, enum silt_language language, silt_slice env,
                          struct silt_exec_sink *sink, struct silt_prestarted_taken *ret);
void silt_prestarted_end_all(struct silt_sandbox *s); /* memory is short */

extern const struct silt_facet silt_prestarted_facet;
