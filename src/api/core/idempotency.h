/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency: the header Idempotency-Key. The first request with a key is carried out as an
 * internal request, so it goes on when its client leaves; its answer is kept for ten minutes after
 * its end. Later requests with that key get the same answer, or wait for it; with another body they
 * are refused. Runs in siltd, in memory only: a new siltd knows no keys. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "event/loop.h"
#include "http/router.h"

struct silt_api;

struct silt_idempotency {
    struct silt_map entries;
    struct silt_link kept; /* ended ones, oldest first */
    struct silt_timer expiry;
    size_t running;
    size_t bytes; /* of all answers */
};

void silt_idempotency_init(struct silt_idempotency *k);
void silt_idempotency_fini(struct silt_api *api);
/* True if the request has a key: it is answered here. Call from inside the handler. */
bool silt_idempotency_take(struct silt_api *api, struct silt_http_request *r);
