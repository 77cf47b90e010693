/* SPDX-License-Identifier: Apache-2.0 */
/* session: helpers shared by the routes for shell sessions. Runs in siltd. */
#pragma once

#include "api/core/api.h"
#include "sandbox/core/session.h"

/* A session's members as /v1 shows them, without its variables. `cwd`: what its shell says, if
 * siltd has not seen it yet; may be empty. */
void silt_api_add_session(struct silt_buf *b, const struct silt_session *s, silt_slice cwd);
void silt_api_answer_session(struct silt_http_request *r, int status, const struct silt_session *s);
/* The run of a call that deletes a session: c->arg below /v1, else the name that c->own points
 * to. */
void silt_api_delete_session(struct silt_call *c);
