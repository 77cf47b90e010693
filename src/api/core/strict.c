/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/strict.h"
#include "base/nearest.h"

#include <stdio.h>

enum {
    PLACE_SIZE = 160, /* "limits.memory" */
    NAME_SHOWN = 64,  /* bytes of a name that the client chose */
    LIST_SHOWN = 16,  /* known names in a message */
    DEPTH_MAX = 4,    /* of objects that the document describes */
};

/* `{path*}` of the router is `{path}` in the document. */
static bool is_path(const char *pattern, const char *path)
{
    for (; *pattern != 0 && *path != 0; pattern++, path++) {
        if (*pattern == '*')
            pattern++;
        if (*pattern != *path)
            return false;
    }
    return *pattern == *path;
}

const struct silt_operation *silt_strict_operation(const struct silt_route *route)
{
    for (size_t i = 0; route != NULL && i < silt_operation_count; i++)
        if (strcmp(silt_operations[i].method, route->method) == 0
            && is_path(route->pattern, silt_operations[i].path))
            return &silt_operations[i];
    return NULL;
}

static const struct silt_known *find(const struct silt_known *list, silt_slice name)
{
    for (; list->name != NULL; list++)
        if (silt_slice_eq(name, silt_slice_of(list->name)))
            return list;
    return NULL;
}

static const char *nearest(const struct silt_known *list, silt_slice name)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (; list->name != NULL; list++) {
        size_t unlike = silt_nearest_unlikeness(name, silt_slice_of(list->name));
        if (unlike < least) {
            least = unlike;
            best = list->name;
        }
    }
    return best;
}

static void add_names(struct silt_buf *b, const struct silt_known *list)
{
    size_t shown = 0;
    for (; list->name != NULL && shown < LIST_SHOWN; list++, shown++)
        silt_buf_addf(b, "%s%s", shown > 0 ? ", " : "", list->name);
    if (list->name != NULL)
        silt_buf_addf(b, " and others");
}

static void refuse(struct silt_http_request *r, const char *what, const char *before,
                   const struct silt_known *list, silt_slice name, const char *code)
{
    char place[PLACE_SIZE + NAME_SHOWN];
    const char *meant = nearest(list, name);
    silt_auto_buf why;
    silt_buf_init(&why, 2048);
    (void)snprintf(place, sizeof(place), "%s%.*s", before,
                   name.len < NAME_SHOWN ? (int)name.len : NAME_SHOWN, name.data);
    silt_buf_addf(&why, "is not a %s here", what);
    if (meant != NULL) {
        silt_buf_addf(&why, "; did you mean %s?", meant);
    } else if (list->name != NULL) {
        silt_buf_addf(&why, "; known: ");
        add_names(&why, list);
    } else {
        silt_buf_addf(&why, ": none is known");
    }
    silt_buf_add_byte(&why, 0);
    silt_api_refuse_value(r, place, why.data, code);
}

bool silt_strict_query(struct silt_http_request *r, const struct silt_operation *o)
{
    silt_slice rest = r->head->query, pair, name;
    while (o != NULL && rest.len > 0 && silt_slice_split(&rest, '&', &pair)) {
        if (!silt_slice_split(&pair, '=', &name) || find(o->query, name) != NULL)
            continue;
        refuse(r, "query parameter", "", o->query, name, "UNKNOWN_PARAMETER");
        return false;
    }
    return true;
}

static bool check(struct silt_http_request *r, const struct silt_known *list,
                  const struct silt_json *value, const char *place, int depth)
{
    char inside[PLACE_SIZE];
    if (list == NULL || depth == DEPTH_MAX)
        return true;
    if (value->type == SILT_JSON_ARRAY) { /* "allow." becomes "allow[1]." */
        int name_len = (int)strlen(place) - (place[0] != 0);
        size_t at = 0;
        for (const struct silt_json *v = value->items.first; v != NULL; v = v->next, at++) {
            (void)snprintf(inside, sizeof(inside), "%.*s[%zu].", name_len, place, at);
            if (!check(r, list, v, inside, depth + 1))
                return false;
        }
        return true;
    }
    if (value->type != SILT_JSON_OBJECT)
        return true; /* its reader says what it must be */
    for (const struct silt_json *v = value->items.first; v != NULL; v = v->next) {
        const struct silt_known *known = find(list, v->key);
        if (known == NULL) {
            refuse(r, "field", place, list, v->key, "UNKNOWN_FIELD");
            return false;
        }
        (void)snprintf(inside, sizeof(inside), "%s%s.", place, known->name);
        if (!check(r, known->inner, v, inside, depth + 1))
            return false;
    }
    return true;
}

bool silt_strict_body(struct silt_http_request *r, const struct silt_operation *o,
                      const struct silt_json *body)
{
    return o == NULL || check(r, o->body, body, "", 0);
}
