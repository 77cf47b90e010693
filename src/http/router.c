/* SPDX-License-Identifier: Apache-2.0 */
#include "http/router.h"

#include <stdio.h>

static bool takes_rest(silt_slice want)
{
    return want.len > 2 && want.data[0] == '{' && want.data[want.len - 2] == '*';
}

/* Compares segment by segment; "{name}" matches one that is not empty. */
static bool fits(const char *pattern, silt_slice path, silt_slice args[SILT_ROUTE_ARGS_MAX])
{
    silt_slice rest = silt_slice_of(pattern), want, got;
    size_t count = 0;
    while (silt_slice_split(&rest, '/', &want)) {
        if (takes_rest(want) && path.data != NULL && count < SILT_ROUTE_ARGS_MAX) {
            args[count] = path;
            return true;
        }
        if (!silt_slice_split(&path, '/', &got))
            return false;
        if (want.len == 0 || want.data[0] != '{') {
            if (!silt_slice_eq(want, got))
                return false;
            continue;
        }
        if (got.len == 0 || count == SILT_ROUTE_ARGS_MAX)
            return false;
        args[count++] = got;
    }
    return path.data == NULL;
}

/* HEAD is GET; the server leaves out the body. */
static bool serves(const struct silt_route *route, silt_slice method)
{
    silt_slice own = silt_slice_of(route->method);
    return silt_slice_eq(own, method) || silt_slice_eq(own, SILT_LIT("*"))
           || (silt_slice_eq(method, SILT_LIT("HEAD")) && silt_slice_eq(own, SILT_LIT("GET")));
}

static void allow(struct silt_route_match *m, const char *method)
{
    size_t used = strlen(m->allow);
    if (strstr(m->allow, method) != NULL)
        return;
    (void)snprintf(m->allow + used, sizeof(m->allow) - used, "%s%s", used > 0 ? ", " : "", method);
}

void silt_router_find(const struct silt_route *routes, size_t count, silt_slice method,
                      silt_slice path, struct silt_route_match *ret)
{
    *ret = (struct silt_route_match){0};
    for (size_t i = 0; i < count; i++) {
        silt_slice args[SILT_ROUTE_ARGS_MAX] = {0};
        if (!fits(routes[i].pattern, path, args))
            continue;
        if (serves(&routes[i], method)) {
            ret->route = &routes[i];
            ret->path_known = true;
            memcpy(ret->args, args, sizeof(args));
            return;
        }
        ret->path_known = true;
        allow(ret, routes[i].method);
    }
}
