/* SPDX-License-Identifier: Apache-2.0 */
/* ask: siltd's client for silt-priv. Every request is answered exactly once: by silt-priv, by its
 * timeout (SILT_TIMEOUT) or by the end of the channel (SILT_INTERRUPTED). Requests that change one
 * slot are sent one at a time; one that timed out still counts as running, and a sandbox that is
 * created after its timeout is stopped before the next request. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "wire/priv.h"

struct silt_priv_ask;

/* `answer->ok` is the result. Error codes: SILT_LIMIT, _NO_SPACE, _TIMEOUT, _UNAVAILABLE,
 * _INTERRUPTED or _INTERNAL; for SILT_PRIV_LOG also _NOT_FOUND and _CONFLICT. The callee owns the
 * descriptors in fds (nfds may be 0). */
typedef void silt_priv_answered(void *context, const struct silt_priv_answer *answer, int *fds,
                                int nfds);

/* Takes fd. */
int silt_priv_ask_open(struct silt_loop *loop, int fd, struct silt_priv_ask **ret,
                       struct silt_error *e);
void silt_priv_ask_close(struct silt_priv_ask *a); /* pending requests are not answered any more */
/* After a restart of silt-priv: takes the new channel. Pending requests fail with SILT_INTERRUPTED,
 * unsent ones go out on the new channel. Without a channel, requests queue up. */
void silt_priv_ask_replace(struct silt_priv_ask *a, int fd);

/* Sends or queues the request and fills in seq. Always takes fds. The callback is never called from
 * inside this function. */
void silt_priv_ask(struct silt_priv_ask *a, const struct silt_priv_request *q, const int *fds,
                   int nfds, silt_priv_answered *on_answer, void *context);
