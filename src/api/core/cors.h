/* SPDX-License-Identifier: Apache-2.0 */
/* cors: which pages of other hosts may call the API from a browser, and how their WebSockets carry
 * the token. Runs in siltd. */
#pragma once

#include "http/server.h"

extern const silt_slice silt_cors_compatible;

/* Sets the request's more_fields: compatible routes allow every origin, as ever; those below /v1
 * the origins of the setting cors.origins. */
void silt_cors_allow(struct silt_http_request *r, const char *origins, bool native);
/* A browser's WebSocket cannot send Authorization: `Sec-WebSocket-Protocol: silt,
 * silt.bearer.TOKEN`. True if it carries this token; then the answer names the protocol `silt`. */
bool silt_cors_has_token(struct silt_http_request *r, silt_slice token);
