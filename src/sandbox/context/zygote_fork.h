/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_fork: requests to silt-priv to fork a context's process from a zygote (a warm Python) into
 * a sandbox, and to reap it. */
#pragma once

#include "sandbox/context/kernel_conn.h"
#include "sandbox/core/sandbox.h"

struct silt_zygote_fork_question;

/* Embedded in the owner of such a process; one request at a time. */
struct silt_zygote_fork {
    struct silt_zygote_fork_question *asked; /* request in flight; NULL: none */
    bool later;                              /* no zygote was ready; one is being made */
    /* Called without descriptors (borrowed) if there is no process. */
    void (*on_forked)(struct silt_zygote_fork *w, int32_t pid, const int *fds, int nfds);
    void (*on_reaped)(struct silt_zygote_fork *w, const int32_t *status); /* NULL: status unknown */
};

/* True if a forked process would behave like a started one: no variable of the image, the sandbox
 * or `env` takes effect at program start. Whether the image has a zygote is for silt-priv to
 * decide. */
bool silt_zygote_fork_env_suits(silt_slice env); /* NAME=value\0… */
bool silt_zygote_fork_suits(const struct silt_sandbox *s, silt_slice env);
/* Takes the guest's ends. */
void silt_zygote_fork_fork(struct silt_zygote_fork *w, const struct silt_sandbox *s,
                           uint64_t number, const int theirs[SILT_KERNEL_FDS]);
/* Asks for the status of a process that has ended. */
void silt_zygote_fork_reap(struct silt_zygote_fork *w, const struct silt_sandbox *s,
                           uint64_t number);
/* The same, without a callback. */
void silt_zygote_fork_let_go(const struct silt_sandbox *s, uint64_t number);
/* Cancels the callback; no-op if none is due. */
void silt_zygote_fork_forget(struct silt_zygote_fork *w);
/* siltd is exiting: does not wait for silt-priv's answer. */
void silt_zygote_fork_free(struct silt_zygote_fork *w);
