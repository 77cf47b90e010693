/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/docker/template.h"

enum { DEPTH_MAX = 16 };

struct state {
    silt_slice rest;
    struct silt_buf *out;
    int depth;
};

static silt_slice trim(silt_slice s)
{
    while (s.len > 0 && memchr(" \t\r\n", s.data[0], 4) != NULL)
        s = (silt_slice){s.data + 1, s.len - 1};
    while (s.len > 0 && memchr(" \t\r\n", s.data[s.len - 1], 4) != NULL)
        s.len--;
    return s;
}

/* ".A.B" */
static int look_up(silt_slice path, const struct silt_json *value, const struct silt_json **ret,
                   struct silt_error *e)
{
    silt_slice name;
    if (path.len == 0 || path.data[0] != '.')
        return silt_fail(e, SILT_INVALID, "format: '%.*s' is not known", (int)path.len, path.data);
    *ret = value;
    path = (silt_slice){path.data + 1, path.len - 1};
    while (path.len > 0 && silt_slice_split(&path, '.', &name))
        *ret = *ret != NULL ? silt_json_get(*ret, name) : NULL;
    return 0;
}

static void write_plain(struct silt_buf *out, const struct silt_json *v)
{
    if (v == NULL || v->type == SILT_JSON_NULL)
        silt_buf_add(out, SILT_LIT("<no value>"));
    else if (v->type == SILT_JSON_STRING)
        silt_buf_add(out, v->string);
    else
        silt_json_value(out, v);
}

/* Uses a separate buffer: the writer looks at the bytes before a value. */
static int write_json(struct silt_buf *out, const struct silt_json *v, struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, out->max);
    if (v != NULL)
        silt_json_value(&b, v);
    else
        silt_buf_add(&b, SILT_LIT("null"));
    silt_buf_add(out, silt_buf_slice(&b));
    return b.broken ? silt_fail(e, SILT_LIMIT, "the output is too large") : 0;
}

static size_t length_of(const struct silt_json *v)
{
    if (v == NULL)
        return 0;
    return v->type == SILT_JSON_STRING                                 ? v->string.len
           : v->type == SILT_JSON_ARRAY || v->type == SILT_JSON_OBJECT ? v->items.count
                                                                       : 0;
}

static bool is_true(const struct silt_json *v)
{
    if (v == NULL || v->type == SILT_JSON_NULL)
        return false;
    return v->type == SILT_JSON_BOOL  ? v->boolean
           : v->type == SILT_JSON_INT ? v->integer != 0
                                      : v->type == SILT_JSON_DOUBLE || length_of(v) > 0;
}

static int write_until_end(struct state *s, const struct silt_json *value, bool show,
                           bool *ret_ended, struct silt_error *e);

/* Runs the body once per item, or once without output. */
static int run_block(struct state *s, const struct silt_json *v, bool range,
                     const struct silt_json *outer, bool show, struct silt_error *e)
{
    silt_slice body = s->rest;
    bool ended, once = !range && is_true(v);
    size_t count = range ? length_of(v) : once;
    const struct silt_json *item =
        range && count > 0 && v->type != SILT_JSON_STRING ? v->items.first : outer;
    if (s->depth == DEPTH_MAX)
        return silt_fail(e, SILT_INVALID, "format: too deep");
    s->depth++;
    for (size_t i = 0; i < count && item != NULL && show; i++, item = range ? item->next : item) {
        s->rest = body;
        if (write_until_end(s, item, true, &ended, e) < 0)
            return -1;
    }
    s->rest = body;
    if (write_until_end(s, outer, false, &ended, e) < 0)
        return -1;
    s->depth--;
    return ended ? 0 : silt_fail(e, SILT_INVALID, "format: an {{end}} is missing");
}

static int run_action(struct state *s, silt_slice action, const struct silt_json *value, bool show,
                      struct silt_error *e)
{
    silt_slice word, rest = trim(action);
    const struct silt_json *v = NULL;
    (void)silt_slice_split(&rest, ' ', &word);
    rest = trim(rest);
    bool range = silt_slice_eq(word, SILT_LIT("range")),
         condition = silt_slice_eq(word, SILT_LIT("if"));
    bool json = silt_slice_eq(word, SILT_LIT("json")),
         length = silt_slice_eq(word, SILT_LIT("len"));
    bool plain = !range && !condition && !json && !length;
    if (look_up(plain ? word : rest, value, &v, e) < 0)
        return -1;
    if (range || condition)
        return run_block(s, v, range, value, show, e);
    if (!show)
        return 0;
    if (json)
        return write_json(s->out, v, e);
    if (length)
        silt_buf_addf(s->out, "%zu", length_of(v));
    else
        write_plain(s->out, v);
    return 0;
}

static int write_until_end(struct state *s, const struct silt_json *value, bool show,
                           bool *ret_ended, struct silt_error *e)
{
    *ret_ended = false;
    while (s->rest.len > 0) {
        const char *open = memmem(s->rest.data, s->rest.len, "{{", 2);
        size_t text = open != NULL ? (size_t)(open - s->rest.data) : s->rest.len;
        if (show)
            silt_buf_add(s->out, (silt_slice){s->rest.data, text});
        s->rest = (silt_slice){s->rest.data + text, s->rest.len - text};
        if (open == NULL)
            return 0;
        const char *close = memmem(s->rest.data, s->rest.len, "}}", 2);
        if (close == NULL)
            return silt_fail(e, SILT_INVALID, "format: a }} is missing");
        silt_slice action = trim((silt_slice){open + 2, (size_t)(close - open) - 2});
        s->rest = (silt_slice){close + 2, s->rest.len - (size_t)(close + 2 - open)};
        *ret_ended = silt_slice_eq(action, SILT_LIT("end"));
        if (*ret_ended)
            return 0;
        if (run_action(s, action, value, show, e) < 0)
            return -1;
    }
    return 0;
}

int silt_template_write(silt_slice text, const struct silt_json *value, struct silt_buf *out,
                        struct silt_error *e)
{
    struct state s = {.rest = text, .out = out};
    bool ended;
    if (silt_slice_eq(text, SILT_LIT("json")))
        return write_json(out, value, e);
    if (write_until_end(&s, value, true, &ended, e) < 0)
        return -1;
    return ended ? silt_fail(e, SILT_INVALID, "format: an {{end}} too many") : 0;
}
