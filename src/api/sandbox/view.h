/* SPDX-License-Identifier: Apache-2.0 */
/* view: a sandbox as clients of /v1 see it. Runs in siltd. */
#pragma once

#include "api/core/api.h"

/* `usage` NULL: zeros. */
void silt_api_add_sandbox(struct silt_buf *b, const struct silt_sandbox *s,
                          const struct silt_priv_stat *usage);
/* Answers with the sandbox and its current usage, or 404 if it is gone by then. */
void silt_api_show_sandbox(struct silt_api *api, struct silt_http_request *r,
                           struct silt_sandbox *s, int status);
void silt_api_refuse_missing(struct silt_http_request *r, silt_slice id);
