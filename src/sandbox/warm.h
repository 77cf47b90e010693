/* SPDX-License-Identifier: Apache-2.0 */
/* warm: processes that silt-priv forks from a warm Python into a sandbox, and reaps. */
#pragma once

#include "sandbox/kernel.h"
#include "sandbox/sandbox.h"

struct silt_warm_question;

/* Embedded in who has such a process: one question at a time. */
struct silt_warm {
    struct silt_warm_question *asked; /* of silt-priv; NULL: nothing */
    /* Without descriptors (borrowed): there is no process. */
    void (*on_forked)(struct silt_warm *w, int32_t pid, const int *fds, int nfds);
    void (*on_reaped)(struct silt_warm *w, const int32_t *status); /* NULL: nobody knows */
};

/* Whether a forked process would be the same as one that is started: nothing in its environment, the image's, the
 * sandbox's and `env`, is for the start of a program. Whether the image has a warm Python is silt-priv's to say. */
bool silt_warm_env_suits(silt_slice env); /* NAME=value\0… */
bool silt_warm_suits(const struct silt_sandbox *s, silt_slice env);
/* Takes the guest's ends. */
void silt_warm_fork(struct silt_warm *w, const struct silt_sandbox *s, uint64_t number,
                    const int theirs[SILT_KERNEL_FDS]);
void silt_warm_reap(struct silt_warm *w, const struct silt_sandbox *s, uint64_t number); /* it has ended */
void silt_warm_let_go(const struct silt_sandbox *s, uint64_t number); /* the same, but nobody wants to know */
void silt_warm_forget(struct silt_warm *w); /* no answer comes any more; fine when none is due */
void silt_warm_free(struct silt_warm *w);   /* the daemon ends: silt-priv's answer is not waited for */
