/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/watch_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOT "/workspace"

enum {
    PATTERNS_MAX = 256,
    PATTERN_MAX = 1024,
    CONTEXT_MAX = 64 << 10, /* of the client's input repeated in an error */
};

static void add_member(struct silt_buf *b, const char *name, const struct silt_json *v)
{
    silt_json_key(b, silt_slice_of(name));
    if (v != NULL)
        silt_json_value(b, v);
    else
        silt_json_null(b);
}

static void refuse(struct silt_call *c, const struct silt_buf *context, const char *why)
{
    silt_api_refuse(c->request, SILT_API_VALIDATION_FAILED,
                    context->broken ? (silt_slice){NULL, 0} : silt_buf_slice(context), "%s", why);
}

void silt_watch_refuse(struct silt_call *c, const char *const *names, const char *why)
{
    silt_auto_buf b;
    silt_buf_init(&b, CONTEXT_MAX);
    silt_json_open(&b, '{');
    for (size_t i = 0; names[i] != NULL; i++) {
        const struct silt_json *v = silt_json_get(c->body, silt_slice_of(names[i]));
        if (v != NULL)
            add_member(&b, names[i], v);
    }
    silt_json_close(&b, '}');
    refuse(c, &b, why);
}

static bool refuse_one(struct silt_call *c, const char *name, const char *why)
{
    silt_watch_refuse(c, (const char *const[]){name, NULL}, why);
    return false;
}

/* ---- path ---- */

/* Folds `.` and `..` textually; the result has no trailing slash. */
static silt_slice resolve(struct silt_call *c, silt_slice path)
{
    size_t room = sizeof(ROOT) + 1 + path.len, n = 0;
    char *out = silt_arena_alloc(c->request->arena, room + 1);
    silt_slice rest = path, part;
    if (out == NULL)
        abort();
    if (path.data[0] != '/') {
        memcpy(out, ROOT, sizeof(ROOT) - 1);
        n = sizeof(ROOT) - 1;
    }
    while (silt_slice_split(&rest, '/', &part)) {
        if (part.len == 0 || silt_slice_eq(part, SILT_LIT(".")))
            continue;
        if (silt_slice_eq(part, SILT_LIT(".."))) {
            while (n > 0 && out[--n] != '/')
                ;
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, part.data, part.len);
        n += part.len;
    }
    if (n == 0)
        out[n++] = '/';
    return (silt_slice){out, n};
}

static bool is_below(silt_slice path, silt_slice root)
{
    return silt_slice_starts(path, root) && (path.len == root.len || path.data[root.len] == '/');
}

static bool refuse_outside(struct silt_call *c, silt_slice path, silt_slice resolved)
{
    silt_auto_buf b;
    silt_buf_init(&b, CONTEXT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, path);
    silt_json_key(&b, SILT_LIT("resolvedPath"));
    silt_json_string(&b, resolved);
    silt_json_key(&b, SILT_LIT("workspaceRoot"));
    silt_json_string(&b, SILT_LIT(ROOT));
    silt_json_close(&b, '}');
    silt_api_refuse(c->request, SILT_API_PERMISSION_DENIED, silt_buf_slice(&b),
                    "path: must be " ROOT " or below it");
    return false;
}

static bool read_path(struct silt_call *c, struct silt_watch_ask *ret)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("path"));
    if (v == NULL || v->type != SILT_JSON_STRING || silt_is_blank(v->string))
        return refuse_one(c, "path", "path: must be a string that is not blank");
    silt_slice path = silt_trim_blank(v->string);
    if (silt_slice_has_byte(path, 0))
        return refuse_one(c, "path", "path: must not hold a NUL character");
    if (path.len > SILT_WORKER_PATH_MAX - 1)
        return refuse_one(c, "path", "path: is longer than 4095 bytes");
    silt_slice resolved = resolve(c, path);
    if (resolved.len > SILT_WORKER_PATH_MAX - 1)
        return refuse_one(c, "path", "path: is longer than 4095 bytes");
    if (!ret->native && !ret->anywhere && !is_below(resolved, SILT_LIT(ROOT)))
        return refuse_outside(c, path, resolved);
    ret->request.path = resolved;
    return true;
}

/* ---- patterns ---- */

static const char *pattern_fault(const struct silt_json *v)
{
    if (v->type != SILT_JSON_STRING || silt_is_blank(v->string))
        return "must be a string that is not blank";
    if (silt_slice_has_byte(v->string, 0))
        return "must not hold a NUL character";
    if (v->string.len > PATTERN_MAX)
        return "is longer than 1024 bytes";
    for (size_t i = 0; i < v->string.len; i++)
        if (silt_is_any(v->string.data[i], "[]{}"))
            return "knows *, ** and ? only, not [ ] { }";
    return NULL;
}

static bool refuse_pattern(struct silt_call *c, const char *name, const struct silt_json *list,
                           const struct silt_json *one, const char *why)
{
    silt_auto_buf b;
    char text[96];
    (void)snprintf(text, sizeof(text), "%s: a pattern %s", name, why);
    silt_buf_init(&b, CONTEXT_MAX);
    silt_json_open(&b, '{');
    add_member(&b, "pattern", one);
    add_member(&b, name, list);
    silt_json_close(&b, '}');
    refuse(c, &b, text);
    return false;
}

static const struct silt_json *list_of(struct silt_call *c, const char *name, bool *ret_good)
{
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(name));
    *ret_good = true;
    if (v == NULL || v->type == SILT_JSON_NULL)
        return NULL;
    if (v->type != SILT_JSON_ARRAY || v->items.count > PATTERNS_MAX) {
        *ret_good =
            refuse_one(c, name, "include and exclude must be lists of at most 256 patterns");
        return NULL;
    }
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        const char *fault = pattern_fault(i);
        if (fault != NULL) {
            *ret_good = refuse_pattern(c, name, v, i, fault);
            return NULL;
        }
    }
    return v->items.count > 0 ? v : NULL;
}

static int by_text(const void *a, const void *b)
{
    const silt_slice *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* Sorted and without duplicates, so that equal requests have equal bytes. */
static void lay_patterns(struct silt_call *c, const struct silt_json *list, silt_slice *ret)
{
    silt_slice sorted[PATTERNS_MAX];
    size_t n = 0, size = 0;
    for (const struct silt_json *i = list->items.first; i != NULL; i = i->next)
        size += (sorted[n++] = i->string).len + 1;
    qsort(sorted, n, sizeof(sorted[0]), by_text);
    char *out = silt_arena_alloc(c->request->arena, size);
    if (out == NULL)
        abort();
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && silt_slice_eq(sorted[i], sorted[i - 1]))
            continue;
        memcpy(out + at, sorted[i].data, sorted[i].len);
        at += sorted[i].len;
        out[at++] = 0;
    }
    *ret = (silt_slice){out, at};
}

static bool read_patterns(struct silt_call *c, struct silt_watch_ask *ret)
{
    bool good;
    const struct silt_json *include = list_of(c, "include", &good);
    const struct silt_json *exclude = good ? list_of(c, "exclude", &good) : NULL;
    if (!good)
        return false;
    if (include != NULL && exclude != NULL) {
        silt_watch_refuse(c, (const char *const[]){"include", "exclude", NULL},
                          "include and exclude cannot be used together");
        return false;
    }
    const struct silt_json *given = silt_json_get(c->body, SILT_LIT("exclude"));
    ret->request.include = include != NULL;
    if (include != NULL || exclude != NULL)
        lay_patterns(c, include != NULL ? include : exclude, &ret->request.patterns);
    else if (given == NULL || given->type == SILT_JSON_NULL) /* an empty list is a valid choice */
        ret->request.patterns = SILT_LIT(".DS_Store\0.git\0node_modules\0");
    if (ret->request.patterns.len > SILT_FRAME_BODY_MAX / 2)
        return refuse_one(c, include != NULL ? "include" : "exclude",
                          "patterns of more than 30 KiB");
    return true;
}

/* Unknown names are ignored. */
static void read_events(struct silt_call *c, struct silt_watch_ask *ret)
{
    static const struct {
        const char *name;
        uint32_t what;
    } rows[] = {
        {"create", SILT_WATCH_CREATE},   {"modify", SILT_WATCH_MODIFY},
        {"delete", SILT_WATCH_DELETE},   {"move_from", SILT_WATCH_MOVE_FROM},
        {"move_to", SILT_WATCH_MOVE_TO}, {"attrib", SILT_WATCH_ATTRIB},
    };
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("events"));
    uint32_t set = 0;
    if (v != NULL && v->type == SILT_JSON_ARRAY)
        for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
            for (size_t k = 0; k < SILT_COUNT(rows); k++)
                if (i->type == SILT_JSON_STRING
                    && silt_slice_eq(i->string, silt_slice_of(rows[k].name)))
                    set |= rows[k].what;
    ret->request.events = set != 0 ? set : SILT_WATCH_DEFAULT;
}

bool silt_watch_ask_read(struct silt_call *c, struct silt_watch_ask *ret)
{
    const struct silt_json *recursive = silt_json_get(c->body, SILT_LIT("recursive"));
    *ret = (struct silt_watch_ask){
        .native = ret->native, .anywhere = ret->anywhere, .request = {.recursive = true}};
    if (!read_path(c, ret))
        return false;
    if (recursive != NULL && recursive->type != SILT_JSON_BOOL)
        return refuse_one(c, "recursive", "recursive: must be true or false");
    if (recursive != NULL)
        ret->request.recursive = recursive->boolean;
    if (!read_patterns(c, ret))
        return false;
    read_events(c, ret);
    return true;
}

void silt_watch_refuse_failed(struct silt_http_request *r, silt_slice path,
                              const struct silt_error *e)
{
    silt_auto_buf b;
    enum silt_api_code code = SILT_API_WATCH_START;
    if (e->sys == ENOENT || e->sys == ENOTDIR)
        code = SILT_API_FILE_NOT_FOUND;
    else if (e->code == SILT_LIMIT || e->code == SILT_GONE || e->code == SILT_INTERRUPTED)
        code = silt_api_code_of(e);
    silt_buf_init(&b, CONTEXT_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("path"));
    silt_json_string(&b, path);
    silt_json_close(&b, '}');
    silt_api_refuse(r, code, silt_buf_slice(&b), "%s", e->text);
}
