/* SPDX-License-Identifier: Apache-2.0 */
/* router: from method and raw path to a handler. Patterns are literal segments, {name} segments and, at
 * the end, {name*}, which takes the rest, also an empty one; method "*" is any. Matching is on the raw, undecoded path; the first row that fits wins; HEAD fits rows of GET. */
#pragma once

#include "http/server.h"

enum { SILT_ROUTE_ARGS_MAX = 4 };

struct silt_route {
    const char *method;
    const char *pattern; /* "/sandboxes/{id}/api/execute"; a pattern that ends in "/" matches
                            exactly that */
    void (*handle)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
    unsigned flags; /* the caller's */
};

struct silt_route_match {
    const struct silt_route *route; /* NULL: no such path, or path_known */
    bool path_known;                /* some row has this path, with another method */
    char allow[64];                 /* those methods, for the Allow field */
    silt_slice args[SILT_ROUTE_ARGS_MAX];
};

void silt_router_find(const struct silt_route *routes, size_t count, silt_slice method,
                      silt_slice path, struct silt_route_match *ret);
