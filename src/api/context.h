/* SPDX-License-Identifier: Apache-2.0 */
/* context: what the routes about interpreter contexts and the code in them share. */
#pragma once

#include "api/api.h"
#include "sandbox/cell.h"

enum { SILT_CONTEXT_ARG_MAX = 64 }; /* an id or the name of a language */

/* A context's id; below /v1 also the name of a language: the one that is used when none is named. NULL: it
 * was refused. */
struct silt_context *silt_context_of(struct silt_call *c, silt_slice id, bool native);
void silt_context_refuse_unknown(struct silt_http_request *r, silt_slice id);
/* Why it could not be started. */
void silt_context_refuse(struct silt_http_request *r, enum silt_language l, const struct silt_error *e);
/* false: it was refused. */
bool silt_context_language(struct silt_call *c, silt_slice name, enum silt_language *ret);
