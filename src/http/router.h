/* SPDX-License-Identifier: Apache-2.0 */
/* router: maps method and raw path to a handler. Patterns consist of literal segments, {name}
 * segments and, at the end, {name*}, which matches the rest, even an empty one; method "*" is any.
 * Matches the raw, undecoded path; the first matching row wins; HEAD matches GET rows. Pure. */
#pragma once

#include "http/server.h"

enum { SILT_ROUTE_ARGS_MAX = 4 };

struct silt_route {
    const char *method;
    const char
        *pattern; /* "/sandboxes/{id}/api/execute"; a pattern that ends in "/" matches only that */
    void (*handle)(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
    unsigned flags; /* the caller's */
};

struct silt_route_match {
    const struct silt_route
        *route;      /* NULL: no such path, or, if path_known, not with this method */
    bool path_known; /* a row has this path with another method */
    char allow[64];  /* the methods of this path, for the Allow header */
    silt_slice args[SILT_ROUTE_ARGS_MAX];
};

void silt_router_find(const struct silt_route *routes, size_t count, silt_slice method,
                      silt_slice path, struct silt_route_match *ret);
