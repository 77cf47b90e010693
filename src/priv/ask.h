/* SPDX-License-Identifier: Apache-2.0 */
/* ask: siltd's side of the channel to silt-priv. Every question is answered exactly once: by
 * silt-priv, by its deadline (SILT_TIMEOUT) or by the death of the channel (SILT_INTERRUPTED). */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "wire/priv.h"

struct silt_priv_ask;

/* `answer->ok` tells; the code of an error is SILT_LIMIT, _NO_SPACE, _TIMEOUT, _UNAVAILABLE,
 * _INTERRUPTED or _INTERNAL, for SILT_PRIV_LOG also _NOT_FOUND and _CONFLICT; descriptors in fds are
 * the callee's now (nfds may be 0). */
typedef void silt_priv_answered(void *context, const struct silt_priv_answer *answer, int *fds,
                                int nfds);

/* Takes fd. */
int silt_priv_ask_open(struct silt_loop *loop, int fd, struct silt_priv_ask **ret,
                       struct silt_error *e);
void silt_priv_ask_close(
    struct silt_priv_ask *a); /* outstanding questions are not answered any more */
/* silt-priv was restarted: takes the new channel; outstanding questions fail with SILT_INTERRUPTED,
 * those that were not sent yet go out on the new channel. While there is no channel, questions
 * wait. */
void silt_priv_ask_replace(struct silt_priv_ask *a, int fd);

/* Sends (or queues) the question; seq is filled in here. Takes fds in any case. The answer never
 * comes from inside this call. */
void silt_priv_ask(struct silt_priv_ask *a, const struct silt_priv_request *q, const int *fds,
                   int nfds, silt_priv_answered *on_answer, void *context);
