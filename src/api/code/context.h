/* SPDX-License-Identifier: Apache-2.0 */
/* context: helpers shared by the routes for interpreter contexts and for running code in them. Runs
 * in siltd. */
#pragma once

#include "api/core/api.h"
#include "sandbox/context/run_queue.h"

enum { SILT_CONTEXT_ARG_MAX = 64 }; /* an id or a language name */

/* Finds a context by id or, below /v1, by language name, which means that language's default
 * context. NULL: already answered with an error. */
struct silt_context *silt_context_of(struct silt_call *c, silt_slice id, bool native);
void silt_context_refuse_unknown(struct silt_http_request *r, silt_slice id);
/* Answers with the reason why a context could not be started. */
void silt_context_refuse(struct silt_http_request *r, enum silt_language l,
                         const struct silt_error *e);
/* False: already answered with an error. */
bool silt_context_language(struct silt_call *c, silt_slice name, enum silt_language *ret);
