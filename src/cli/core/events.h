/* SPDX-License-Identifier: Apache-2.0 */
/* events: reads a response that is a stream of events, each a JSON object. */
#pragma once

#include "cli/core/client.h"

/* 0: go on; 1: this was the last event; -1: error. */
typedef int (*silt_events_take)(void *to, const struct silt_json *event, struct silt_error *e);

/* 1: `take` saw the last event; 0: the stream ended without it; -1: error, including those of
 * `take`. */
int silt_events_follow(struct silt_client *c, const struct silt_client_request *q,
                       silt_events_take take, void *to, struct silt_error *e);
