/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rpc/message.h"
#include "base/clock.h"
#include "base/own.h"

const struct silt_json *silt_rpc_item(const struct silt_json *array, size_t n)
{
    const struct silt_json *v =
        array != NULL && array->type == SILT_JSON_ARRAY ? array->items.first : NULL;
    for (; v != NULL && n > 0; n--)
        v = v->next;
    return v;
}

static bool is_text(const struct silt_json *v, silt_slice text)
{
    return v != NULL && v->type == SILT_JSON_STRING && silt_slice_eq(v->string, text);
}

static bool is_id(const struct silt_json *v, int64_t *ret)
{
    if (v == NULL || v->type != SILT_JSON_INT || v->integer < INT32_MIN
        || v->integer > INT64_MAX / 2)
        return false;
    *ret = v->integer;
    return true;
}

bool silt_rpc_is_tag(const struct silt_json *value, const char *tag)
{
    return is_text(silt_rpc_item(value, 0), silt_slice_of(tag));
}

bool silt_rpc_is_undefined(const struct silt_json *value)
{
    return value == NULL || (silt_rpc_is_tag(value, "undefined") && value->items.count == 1);
}

/* ---- messages ---- */

static const struct {
    const char *name;
    bool has_id, has_count, has_value;
} kinds[] = {
    [SILT_RPC_PUSH] = {"push", false, false, true},
    [SILT_RPC_PULL] = {"pull", true, false, false},
    [SILT_RPC_RESOLVE] = {"resolve", true, false, true},
    [SILT_RPC_REJECT] = {"reject", true, false, true},
    [SILT_RPC_RELEASE] = {"release", true, true, false},
    [SILT_RPC_STREAM] = {"stream", false, false, true},
    [SILT_RPC_DOWNLOAD] = {"pipe", false, false, false},
    [SILT_RPC_ABORT] = {"abort", false, false, true},
};

static bool fill(const struct silt_json *m, struct silt_rpc_message *ret)
{
    const struct silt_json *at = silt_rpc_item(m, 1);
    if (kinds[ret->kind].has_id) {
        if (!is_id(at, &ret->id))
            return false;
        at = at->next;
    }
    if (kinds[ret->kind].has_count) {
        if (!is_id(at, &ret->count) || ret->count < 0)
            return false;
        at = at->next;
    }
    ret->value = at;
    return !kinds[ret->kind].has_value || at != NULL;
}

static int refuse(struct silt_error *e, silt_slice text)
{
    char shown[97];
    size_t n = text.len < sizeof(shown) - 1 ? text.len : sizeof(shown) - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = text.data[i] >= 0x20 && text.data[i] < 0x7f ? text.data[i] : '?';
    shown[n] = 0;
    return silt_fail(e, SILT_INVALID, "bad RPC message: %s", shown);
}

bool silt_rpc_read(struct silt_arena *a, silt_slice text, struct silt_rpc_message *ret,
                   struct silt_error *e)
{
    const struct silt_json *m;
    *ret = (struct silt_rpc_message){0};
    if (silt_json_read(a, text, &m, e) == 0)
        for (size_t i = 0; i < SILT_COUNT(kinds); i++)
            if (silt_rpc_is_tag(m, kinds[i].name)) {
                ret->kind = (enum silt_rpc_kind)i;
                if (fill(m, ret))
                    return true;
            }
    return refuse(e, text) == 0;
}

static bool is_path(const struct silt_json *v)
{
    if (v == NULL || v->type != SILT_JSON_ARRAY)
        return false;
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
        if (i->type != SILT_JSON_STRING && i->type != SILT_JSON_INT)
            return false;
    return true;
}

bool silt_rpc_is_invocation(const struct silt_json *value, struct silt_rpc_invocation *ret)
{
    *ret = (struct silt_rpc_invocation){.path = silt_rpc_item(value, 2),
                                        .args = silt_rpc_item(value, 3)};
    return silt_rpc_is_tag(value, "pipeline") && value->items.count <= 4
           && is_id(silt_rpc_item(value, 1), &ret->target)
           && (ret->path == NULL || is_path(ret->path))
           && (ret->args == NULL || ret->args->type == SILT_JSON_ARRAY);
}

/* ---- values ---- */

static bool note(int64_t *list, size_t *count, const struct silt_json *id)
{
    if (*count == SILT_RPC_REFS_MAX || !is_id(id, &list[*count]))
        return false;
    ++*count;
    return true;
}

/* Inside something we never accept: its parts need not be values, but all references in it must be
 * released. */
static bool scan(const struct silt_json *v, struct silt_rpc_refs *r)
{
    const struct silt_json *id = silt_rpc_item(v, 1);
    if (v->type != SILT_JSON_ARRAY && v->type != SILT_JSON_OBJECT)
        return true;
    if (silt_rpc_is_tag(v, "readable"))
        return note(r->pipes, &r->pipe_count, id);
    if (silt_rpc_is_tag(v, "export") || silt_rpc_is_tag(v, "promise")
        || silt_rpc_is_tag(v, "writable"))
        return note(r->exports, &r->count, id);
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next)
        if (!scan(i, r))
            return false;
    return true;
}

static bool check(const struct silt_json *v, struct silt_rpc_refs *r);

static bool check_all(const struct silt_json *first, struct silt_rpc_refs *r)
{
    for (; first != NULL; first = first->next)
        if (!check(first, r))
            return false;
    return true;
}

static bool is_string_at(const struct silt_json *v, size_t n)
{
    const struct silt_json *s = silt_rpc_item(v, n);
    return s != NULL && s->type == SILT_JSON_STRING;
}

static bool is_error(const struct silt_json *v, struct silt_rpc_refs *r)
{
    const struct silt_json *props = silt_rpc_item(v, 4);
    return is_string_at(v, 1) && is_string_at(v, 2)
           && (props == NULL
               || (props->type == SILT_JSON_OBJECT && check_all(props->items.first, r)));
}

static bool is_date(const struct silt_json *v)
{
    const struct silt_json *ms = silt_rpc_item(v, 1);
    return ms != NULL
           && (ms->type == SILT_JSON_INT || ms->type == SILT_JSON_DOUBLE
               || ms->type == SILT_JSON_NULL);
}

static bool check_tag(const struct silt_json *v, struct silt_rpc_refs *r)
{
    static const char *const foreign[] = {"import",  "pipeline", "remap",    "promise", "writable",
                                          "headers", "request",  "response", "blob"};
    for (size_t i = 0; i < SILT_COUNT(foreign); i++)
        if (silt_rpc_is_tag(v, foreign[i])) {
            r->foreign = true;
            return scan(v, r);
        }
    if (silt_rpc_is_tag(v, "export") || silt_rpc_is_tag(v, "readable"))
        return scan(v, r);
    if (silt_rpc_is_tag(v, "error"))
        return is_error(v, r);
    if (silt_rpc_is_tag(v, "date"))
        return is_date(v);
    if (silt_rpc_is_tag(v, "bytes") || silt_rpc_is_tag(v, "bigint"))
        return is_string_at(v, 1);
    return silt_rpc_is_undefined(v) || silt_rpc_is_tag(v, "inf") || silt_rpc_is_tag(v, "-inf")
           || silt_rpc_is_tag(v, "nan");
}

static bool is_list(const struct silt_json *v)
{
    return v->type == SILT_JSON_ARRAY && v->items.count == 1
           && v->items.first->type == SILT_JSON_ARRAY;
}

/* Recursion is bounded by the reader's depth limit. */
static bool check(const struct silt_json *v, struct silt_rpc_refs *r)
{
    if (v->type == SILT_JSON_OBJECT)
        return check_all(v->items.first, r);
    if (v->type != SILT_JSON_ARRAY)
        return true;
    return is_list(v) ? check_all(v->items.first->items.first, r) : check_tag(v, r);
}

bool silt_rpc_refs(const struct silt_json *value, struct silt_rpc_refs *ret)
{
    *ret = (struct silt_rpc_refs){0};
    return check(value, ret);
}

bool silt_rpc_args_refs(const struct silt_json *args, struct silt_rpc_refs *ret)
{
    *ret = (struct silt_rpc_refs){0};
    return check_all(args->items.first, ret);
}

static void put_items(struct silt_buf *b, const struct silt_json *v, char bracket)
{
    silt_json_open(b, bracket);
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        if (bracket == '{' && silt_rpc_is_undefined(i))
            continue;
        if (bracket == '{')
            silt_json_key(b, i->key);
        silt_rpc_plain(b, i);
    }
    silt_json_close(b, bracket == '{' ? '}' : ']');
}

static silt_slice text_at(const struct silt_json *v, size_t n)
{
    const struct silt_json *s = silt_rpc_item(v, n);
    return s != NULL && s->type == SILT_JSON_STRING ? s->string : (silt_slice){NULL, 0};
}

static void put_date(struct silt_buf *b, const struct silt_json *ms)
{
    const int64_t most = 253402300799000; /* the last second of the year 9999 */
    char text[SILT_ISO_SIZE];
    if (ms == NULL || ms->type != SILT_JSON_INT || ms->integer < 0 || ms->integer > most) {
        silt_json_null(b);
        return;
    }
    silt_clock_iso(ms->integer, text);
    silt_json_string(b, silt_slice_of(text));
}

static void put_tag(struct silt_buf *b, const struct silt_json *v)
{
    if (silt_rpc_is_tag(v, "date")) {
        put_date(b, silt_rpc_item(v, 1));
    } else if (silt_rpc_is_tag(v, "bytes") || silt_rpc_is_tag(v, "bigint")) {
        silt_json_string(b, text_at(v, 1));
    } else if (silt_rpc_is_tag(v, "error")) {
        silt_json_open(b, '{');
        silt_json_key(b, SILT_LIT("name"));
        silt_json_string(b, text_at(v, 1));
        silt_json_key(b, SILT_LIT("message"));
        silt_json_string(b, text_at(v, 2));
        silt_json_close(b, '}');
    } else {
        silt_json_null(b);
    }
}

void silt_rpc_plain(struct silt_buf *b, const struct silt_json *value)
{
    if (value->type == SILT_JSON_OBJECT)
        put_items(b, value, '{');
    else if (value->type != SILT_JSON_ARRAY)
        silt_json_value(b, value);
    else if (is_list(value))
        put_items(b, value->items.first, '[');
    else
        put_tag(b, value);
}
