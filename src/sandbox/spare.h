/* SPDX-License-Identifier: Apache-2.0 */
/* spare: an interpreter that has started in a sandbox and waits to be its next context. A Node is there after the first
 * JavaScript or TypeScript context; in ready sandboxes, where the settings say so, a Node or a Python forked from a warm
 * one, for the first context. It belongs to the sandbox like everything that runs in it: its
 * memory counts, it ends with the others, and it keeps nobody awake. Nobody else knows of it: a siltd that
 * dies takes it along, because then nobody can send it requests any more. */
#pragma once

#include "sandbox/exec.h"
#include "sandbox/kernel.h"

struct silt_spare_taken {
    uint64_t number;
    int fds[SILT_KERNEL_FDS]; /* ours; the caller's now */
    struct silt_exec *exec;
};

void silt_spare_init(struct silt_sandbox *s);
/* A context of this language is ready: the next one will not have to start. */
void silt_spare_want(struct silt_sandbox *s, enum silt_language language);
/* For a context with these variables, on top of the sandbox's; `sink` is its exec's from now on. false: there
 * is none, or the variables are for the start of a program. It may end without a word: then another way has
 * to be found. */
bool silt_spare_take(struct silt_sandbox *s, enum silt_language language, silt_slice env, struct silt_exec_sink *sink,
                     struct silt_spare_taken *ret);
/* Those ready sandboxes that are taken next have what the settings say. Fine at any time: what could not be had is tried
 * again. */
void silt_spare_stock(struct silt_registry *r);
void silt_spare_on_claimed(struct silt_sandbox *s); /* from now on it is somebody's memory */
void silt_spare_end_all(struct silt_sandbox *s); /* memory is short */
void silt_spare_drop_all(struct silt_sandbox *s);   /* its processes have ended: after their execs */
void silt_spare_forget_all(struct silt_sandbox *s); /* the daemon ends */
