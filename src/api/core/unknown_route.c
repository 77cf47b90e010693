/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a path that no route has: 404 with the nearest route. */
#include "api/core/unknown_route.h"
#include "base/nearest.h"

#include <stdio.h>

enum {
    SEGMENTS_MAX = 12,
    MISSING = 4,      /* the cost of a segment that is missing or too much, */
    OTHER_METHOD = 1, /* of another method, */
    PER_SEGMENT = 3,  /* and the most that each segment may cost on average */
    NO_PREFIX = 1,    /* /v1 was left out */
};

static size_t cut(silt_slice path, silt_slice out[SEGMENTS_MAX])
{
    size_t n = 0;
    silt_slice part;
    while (n < SEGMENTS_MAX && silt_slice_split(&path, '/', &part))
        if (part.len > 0)
            out[n++] = part;
    return n;
}

static size_t compare(silt_slice want, silt_slice got)
{
    if (want.data[0] == '{')
        return 0;
    size_t distance = silt_nearest_distance(want, got);
    if (distance == 0)
        return 0;
    if (silt_slice_starts(want, got) || silt_slice_starts(got, want))
        return 1; /* a plural, as a rule */
    return distance <= 1 + want.len / 3 ? distance : SIZE_MAX;
}

static size_t cost(const silt_slice *want, size_t want_count, const silt_slice *got,
                   size_t got_count)
{
    size_t sum = 0, both = want_count < got_count ? want_count : got_count;
    if (want_count + got_count - 2 * both > 1)
        return SIZE_MAX;
    for (size_t i = 0; i < both; i++) {
        size_t one = compare(want[i], got[i]);
        if (one == SIZE_MAX)
            return SIZE_MAX;
        sum += one;
    }
    return sum + MISSING * (want_count + got_count - 2 * both);
}

static const struct silt_route *nearest(const struct silt_route *routes, size_t count,
                                        const struct silt_http_head *head)
{
    silt_slice got[SEGMENTS_MAX], want[SEGMENTS_MAX], with[SEGMENTS_MAX + 1];
    size_t got_count = cut(head->path, got), least = PER_SEGMENT * got_count + 1;
    const struct silt_route *best = NULL;
    with[0] = SILT_LIT("v1");
    memcpy(with + 1, got, got_count * sizeof(got[0]));
    for (size_t i = 0; i < count; i++) {
        size_t want_count = cut(silt_slice_of(routes[i].pattern), want);
        size_t one = cost(want, want_count, got, got_count);
        size_t other = cost(want, want_count, with, got_count + 1);
        if (other != SIZE_MAX && other + NO_PREFIX < one)
            one = other + NO_PREFIX;
        if (one != SIZE_MAX && !silt_slice_eq(silt_slice_of(routes[i].method), head->method))
            one += OTHER_METHOD;
        if (one < least) {
            least = one;
            best = &routes[i];
        }
    }
    return best;
}

/* Clients of the compatible routes know the code of the server that these imitate. */
static bool is_compatible(silt_slice path)
{
    return silt_slice_starts(path, SILT_LIT("/sandboxes/"));
}

void silt_api_refuse_route(struct silt_http_request *r, const struct silt_route *routes,
                           size_t count)
{
    silt_slice path = r->head->path, method = r->head->method;
    if (is_compatible(path)) {
        silt_api_refuse(r, SILT_API_UNKNOWN_ROUTE, (silt_slice){NULL, 0},
                        "The requested endpoint was not found");
        return;
    }
    const struct silt_route *near = nearest(routes, count, r->head);
    silt_auto_buf context;
    silt_buf_init(&context, 1024);
    silt_json_open(&context, '{');
    if (near != NULL) {
        silt_json_key(&context, SILT_LIT("nearest"));
        silt_json_open(&context, '{');
        silt_json_add_text(&context, "method", near->method);
        silt_json_add_text(&context, "path", near->pattern);
        silt_json_close(&context, '}');
    }
    silt_json_close(&context, '}');
    silt_api_refuse(r, SILT_API_ROUTE_NOT_FOUND, silt_buf_slice(&context),
                    "There is no route %.*s %.*s%s%s%s%s%s", (int)method.len, method.data,
                    path.len < 200 ? (int)path.len : 200, path.data,
                    near != NULL ? "; did you mean " : "", near != NULL ? near->method : "",
                    near != NULL ? " " : "", near != NULL ? near->pattern : "",
                    near != NULL ? "?" : "");
}
