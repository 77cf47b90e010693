/* SPDX-License-Identifier: Apache-2.0 */
/* watch_request: the validated body of a file-watch request. Runs in siltd; shared by the event
 * streams and by the check route. An invalid body is answered with 400. */
#pragma once

#include "api/core/api.h"
#include "sandbox/file/watch.h"

struct silt_watch_ask {
    struct silt_file_watch_request request; /* slices live as long as the HTTP request */
    bool native;   /* below /v1: any path of the sandbox, and events one by one */
    bool anywhere; /* any path is allowed */
};

/* False: already answered with an error. */
bool silt_watch_ask_read(struct silt_call *c, struct silt_watch_ask *ret);
/* 400 with the offending members in the context; `names` ends with NULL. */
void silt_watch_refuse(struct silt_call *c, const char *const *names, const char *why);
/* Answers with the reason why a watch could not be started. */
void silt_watch_refuse_failed(struct silt_http_request *r, silt_slice path,
                              const struct silt_error *e);
