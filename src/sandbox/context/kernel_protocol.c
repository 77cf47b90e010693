/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/kernel_protocol.h"
#include "base/own.h"

enum { TRACEBACK_MAX = 10000 };

static void begin(struct silt_buf *b, const char *word)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("t"));
    silt_json_string(b, silt_slice_of(word));
}

static void add_id(struct silt_buf *b, uint64_t id)
{
    silt_json_key(b, SILT_LIT("id"));
    silt_json_u64(b, id);
}

static void end(struct silt_buf *b)
{
    silt_json_close(b, '}');
    silt_buf_add_byte(b, '\n');
}

static void add_env(struct silt_buf *b, silt_slice env)
{
    silt_slice variable, name;
    silt_json_key(b, SILT_LIT("env"));
    silt_json_open(b, '{');
    while (env.len > 0 && silt_slice_split(&env, 0, &variable)) {
        if (memchr(variable.data, '=', variable.len) == NULL
            || !silt_slice_split(&variable, '=', &name) || name.len == 0)
            continue;
        silt_json_key(b, name);
        silt_json_string(b, variable);
    }
    silt_json_close(b, '}');
}

void silt_kernel_say_init(struct silt_buf *b, const struct silt_kernel_init *i)
{
    begin(b, "init");
    silt_json_key(b, SILT_LIT("language"));
    silt_json_string(b, silt_slice_of(i->language));
    silt_json_key(b, SILT_LIT("cwd"));
    silt_json_string(b, i->cwd);
    add_env(b, i->env);
    silt_json_key(b, SILT_LIT("budget"));
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("result"));
    silt_json_u64(b, i->result_bytes);
    silt_json_close(b, '}');
    if (i->user.len > 0) {
        silt_json_key(b, SILT_LIT("user"));
        silt_json_string(b, i->user);
    }
    if (i->awaited) {
        silt_json_key(b, SILT_LIT("awaited"));
        silt_json_bool(b, true);
    }
    end(b);
}

void silt_kernel_say_run(struct silt_buf *b, uint64_t id, silt_slice code)
{
    begin(b, "run");
    add_id(b, id);
    silt_json_key(b, SILT_LIT("code"));
    silt_json_string(b, code);
    end(b);
}

void silt_kernel_say_input(struct silt_buf *b, uint64_t id, silt_slice text, bool eof)
{
    begin(b, "input");
    add_id(b, id);
    silt_json_key(b, eof ? SILT_LIT("eof") : SILT_LIT("text"));
    if (eof)
        silt_json_bool(b, true);
    else
        silt_json_string(b, text);
    end(b);
}

void silt_kernel_say_ping(struct silt_buf *b, uint64_t id)
{
    begin(b, "ping");
    add_id(b, id);
    end(b);
}

/* ---- replies ---- */

static const char *const words[SILT_KERNEL_WORD_MAX] = {
    [SILT_KERNEL_READY] = "ready",   [SILT_KERNEL_STALE] = "stale", [SILT_KERNEL_FAILED] = "failed",
    [SILT_KERNEL_RESULT] = "result", [SILT_KERNEL_ERROR] = "error", [SILT_KERNEL_INPUT] = "input",
    [SILT_KERNEL_DONE] = "done",     [SILT_KERNEL_EXIT] = "exit",   [SILT_KERNEL_PONG] = "pong",
};

static int get_string(const struct silt_json *o, silt_slice key, silt_slice *ret,
                      struct silt_error *e)
{
    const struct silt_json *v = silt_json_get(o, key);
    if (v == NULL || v->type != SILT_JSON_STRING)
        return silt_fail(e, SILT_PROTOCOL, "%.*s is no string", (int)key.len, key.data);
    *ret = v->string;
    return 0;
}

static int get_number(const struct silt_json *o, silt_slice key, int64_t max, int64_t *ret,
                      struct silt_error *e)
{
    const struct silt_json *v = silt_json_get(o, key);
    if (v == NULL || v->type != SILT_JSON_INT || v->integer < 0 || v->integer > max)
        return silt_fail(e, SILT_PROTOCOL, "%.*s is no fitting number", (int)key.len, key.data);
    *ret = v->integer;
    return 0;
}

static bool get_bool(const struct silt_json *o, silt_slice key)
{
    const struct silt_json *v = silt_json_get(o, key);
    return v != NULL && v->type == SILT_JSON_BOOL && v->boolean;
}

static int find_word(const struct silt_json *o, enum silt_kernel_word *ret, struct silt_error *e)
{
    silt_slice text;
    if (o->type != SILT_JSON_OBJECT)
        return silt_fail(e, SILT_PROTOCOL, "a line that is no object");
    if (get_string(o, SILT_LIT("t"), &text, e) < 0)
        return -1;
    for (int i = 0; i < SILT_KERNEL_WORD_MAX; i++)
        if (silt_slice_eq(text, silt_slice_of(words[i]))) {
            *ret = (enum silt_kernel_word)i;
            return 0;
        }
    return silt_fail(e, SILT_PROTOCOL, "a line of an unknown kind");
}

/* Members of a result that clients see. */
static const char *const formats[] = {"text", "html",  "png",      "jpeg",
                                      "svg",  "latex", "markdown", "javascript",
                                      "json", "chart", "data",     "truncated"};

static void tell_result(struct silt_buf *b, const struct silt_json *body)
{
    for (size_t i = 0; i < SILT_COUNT(formats); i++) {
        const struct silt_json *v = silt_json_get(body, silt_slice_of(formats[i]));
        if (v == NULL || v->type == SILT_JSON_NULL)
            continue;
        silt_json_key(b, silt_slice_of(formats[i]));
        silt_json_value(b, v);
    }
}

static void tell_error(struct silt_buf *b, const struct silt_kernel_said *s,
                       const struct silt_json *traceback)
{
    struct silt_error ignored;
    int64_t line = 0;
    silt_json_key(b, SILT_LIT("ename"));
    silt_json_string(b, s->name);
    silt_json_key(b, SILT_LIT("evalue"));
    silt_json_string(b, s->value);
    silt_json_key(b, SILT_LIT("traceback"));
    silt_json_value(b, traceback);
    if (get_number(s->body, SILT_LIT("line"), INT32_MAX, &line, &ignored) < 0 || line == 0)
        return; /* unknown */
    silt_json_key(b, SILT_LIT("lineNumber"));
    silt_json_i64(b, line);
}

static int hear_error(struct silt_kernel_said *s, struct silt_buf *told, struct silt_error *e)
{
    const struct silt_json *list = silt_json_get(s->body, SILT_LIT("traceback"));
    if (get_string(s->body, SILT_LIT("ename"), &s->name, e) < 0
        || get_string(s->body, SILT_LIT("evalue"), &s->value, e) < 0)
        return -1;
    if (list == NULL || list->type != SILT_JSON_ARRAY || list->items.count > TRACEBACK_MAX)
        return silt_fail(e, SILT_PROTOCOL, "traceback is no fitting array");
    for (const struct silt_json *v = list->items.first; v != NULL; v = v->next)
        if (v->type != SILT_JSON_STRING)
            return silt_fail(e, SILT_PROTOCOL, "traceback is no array of strings");
    tell_error(told, s, list);
    return 0;
}

/* Both help a siltd that no longer knows them. */
static void hear_pong(struct silt_kernel_said *s)
{
    struct silt_error ignored;
    int64_t count = 0;
    if (get_number(s->body, SILT_LIT("count"), UINT32_MAX, &count, &ignored) == 0)
        s->count = (uint32_t)count;
    if (get_number(s->body, SILT_LIT("used"), INT64_MAX, &s->used_ms, &ignored) < 0)
        s->used_ms = 0;
}

static int hear_rest(struct silt_kernel_said *s, struct silt_buf *told, struct silt_error *e)
{
    int64_t number = 0;
    switch (s->word) {
    case SILT_KERNEL_ERROR:
        return hear_error(s, told, e);
    case SILT_KERNEL_FAILED:
        if (get_string(s->body, SILT_LIT("code"), &s->name, e) < 0)
            return -1;
        return get_string(s->body, SILT_LIT("why"), &s->value, e);
    case SILT_KERNEL_STALE:
        return get_string(s->body, SILT_LIT("why"), &s->value, e);
    case SILT_KERNEL_INPUT:
        s->password = get_bool(s->body, SILT_LIT("password"));
        return get_string(s->body, SILT_LIT("prompt"), &s->value, e);
    case SILT_KERNEL_RESULT:
        s->main = get_bool(s->body, SILT_LIT("main"));
        tell_result(told, s->body);
        return 0;
    case SILT_KERNEL_DONE:
        if (get_number(s->body, SILT_LIT("count"), UINT32_MAX, &number, e) < 0)
            return -1;
        s->count = (uint32_t)number;
        return 0;
    case SILT_KERNEL_EXIT:
        if (get_number(s->body, SILT_LIT("status"), 255, &number, e) < 0)
            return -1;
        s->status = (int32_t)number;
        return 0;
    case SILT_KERNEL_PONG:
        hear_pong(s);
        return 0;
    case SILT_KERNEL_READY:
    case SILT_KERNEL_WORD_MAX:
        return 0;
    }
    return 0;
}

static bool has_id(enum silt_kernel_word w)
{
    return w != SILT_KERNEL_READY && w != SILT_KERNEL_STALE && w != SILT_KERNEL_FAILED;
}

int silt_kernel_hear(struct silt_arena *a, struct silt_buf *told, silt_slice line,
                     struct silt_kernel_said *ret, struct silt_error *e)
{
    int64_t id = 0;
    *ret = (struct silt_kernel_said){0};
    if (silt_json_read(a, line, &ret->body, e) < 0 || find_word(ret->body, &ret->word, e) < 0)
        return -1;
    if (has_id(ret->word) && get_number(ret->body, SILT_LIT("id"), INT64_MAX, &id, e) < 0)
        return -1;
    ret->id = (uint64_t)id;
    if (hear_rest(ret, told, e) < 0)
        return -1;
    if (told->broken)
        return silt_fail(e, SILT_LIMIT, "a line that becomes too long");
    ret->told = silt_buf_slice(told);
    return 0;
}
