/* SPDX-License-Identifier: Apache-2.0 */
/* unknown_route: the answer to a path that no route has. Runs in siltd. */
#pragma once

#include "api/core/reply.h"
#include "http/router.h"

void silt_api_refuse_route(struct silt_http_request *r, const struct silt_route *routes,
                           size_t count);
