/* SPDX-License-Identifier: Apache-2.0 */
/* strict: requests below /v1 may name only what docs/openapi.json documents. A misspelled option
 * would otherwise be ignored, with a sandbox on the network that was meant to be closed. The tables
 * are made from that document by tools/known_names.py. Runs in siltd. */
#pragma once

#include "api/core/reply.h"
#include "http/router.h"

/* A list ends with a NULL name. */
struct silt_known {
    const char *name;
    const struct silt_known *inner; /* members of the object, or of the objects of the list; NULL:
                                       whatever it holds */
};

struct silt_operation {
    const char *method, *path;      /* as in the document */
    const struct silt_known *query; /* never NULL */
    const struct silt_known *body;  /* NULL: no JSON object */
};

extern const struct silt_operation silt_operations[];
extern const size_t silt_operation_count;

/* NULL: the route is not in the document, as those that belong to a service inside. */
const struct silt_operation *silt_strict_operation(const struct silt_route *route);
/* False: already answered with 400. */
bool silt_strict_query(struct silt_http_request *r, const struct silt_operation *o);
bool silt_strict_body(struct silt_http_request *r, const struct silt_operation *o,
                      const struct silt_json *body);
