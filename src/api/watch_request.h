/* SPDX-License-Identifier: Apache-2.0 */
/* watch_request: what a request asks to be watched, checked. Shared by the streams and by check. */
#pragma once

#include "api/api.h"
#include "sandbox/watch.h"

struct silt_watch_ask {
    struct silt_lookout_request request; /* slices live as long as the HTTP request */
    bool native;                         /* any path of the sandbox, and events one by one */
    bool anywhere;                       /* any path */
};

/* False: refused already. */
bool silt_watch_ask_read(struct silt_call *c, struct silt_watch_ask *ret);
/* 400 with the offending members in the context; the last one is NULL. */
void silt_watch_refuse(struct silt_call *c, const char *const *names, const char *why);
/* What came of a watch that did not start. */
void silt_watch_refuse_failed(struct silt_http_request *r, silt_slice path,
                              const struct silt_error *e);
