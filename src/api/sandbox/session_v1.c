/* SPDX-License-Identifier: Apache-2.0 */
/* One session below /v1: show, change its variables, delete. */
#include "api/core/quote.h"
#include "api/process/script.h"
#include "api/sandbox/session.h"
#include "base/id.h"

#include <stdlib.h>

/* Of the shell as it is now, without programs of the image; it prints NAME=value, each with a
 * NUL. */
#define PRINT_ENV                                                                                  \
    "compgen -e | while IFS= \\builtin read -r __silt_name; do "                                   \
    "\\builtin printf '%s=%s\\0' \"$__silt_name\" \"${!__silt_name}\"; done"

enum { LOOK_MS = 5000, CHANGE_MS = 10000, ENV_JSON_MAX = 6 * SILT_ENV_MAX + (64 << 10) };

static void refuse_unknown_session(struct silt_http_request *r, silt_slice name)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_add_slice(&b, "sessionId", name);
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_SESSION_NOT_FOUND, silt_buf_slice(&b), "Session '%.*s' not found",
                    (int)name.len, name.data);
}

/* The name in the path: c->arg, unescaped by the handler. */
static bool choose_session(struct silt_call *c)
{
    c->session = silt_session_find(c->sandbox, c->arg);
    if (c->session != NULL && c->session->state != SILT_SESSION_DEAD)
        return true;
    refuse_unknown_session(c->request, c->arg);
    return false;
}

static void add_env(struct silt_buf *b, silt_slice printed)
{
    silt_slice one, name;
    silt_json_key(b, SILT_LIT("env"));
    silt_json_open(b, '{');
    while (silt_slice_split(&printed, 0, &one)) {
        if (!silt_slice_split(&one, '=', &name) || !silt_id_is_env_name(name)
            || silt_slice_eq(name, SILT_LIT("_")))
            continue;
        silt_json_key(b, name);
        silt_json_string(b, one);
    }
    silt_json_close(b, '}');
}

static silt_slice variable(silt_slice printed, silt_slice wanted)
{
    silt_slice one, name;
    while (silt_slice_split(&printed, 0, &one))
        if (silt_slice_split(&one, '=', &name) && silt_slice_eq(name, wanted))
            return one;
    return (silt_slice){NULL, 0};
}

static void on_env(struct silt_call *c, const struct silt_script_end *end)
{
    struct silt_session *s = silt_session_find(c->sandbox, c->arg);
    silt_auto_buf b;
    silt_buf_init(&b, ENV_JSON_MAX);
    if (s == NULL || s->state == SILT_SESSION_DEAD || end->shell_ended) {
        refuse_unknown_session(c->request, c->arg);
        return;
    }
    silt_json_open(&b, '{');
    silt_api_add_session(&b, s, variable(end->out, SILT_LIT("PWD")));
    if (end->code == 0 && !end->cut) {
        add_env(&b, end->out);
    } else {
        silt_json_key(&b, SILT_LIT("env"));
        silt_json_null(&b);
    }
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

/* A shell that runs a command cannot say what its variables are. */
static void show(struct silt_call *c)
{
    struct silt_script_end unknown = {.code = -1};
    struct silt_script_wish w = {.session = c->session,
                                 .text = SILT_LIT(PRINT_ENV),
                                 .timeout_ms = LOOK_MS,
                                 .out_max = SILT_ENV_MAX,
                                 .done = on_env};
    if (c->session->holder != NULL || c->session->foreign_exec != 0 || c->session->pid == 0)
        on_env(c, &unknown);
    else
        silt_script_run(c, &w);
}

static void on_changed(struct silt_call *c, const struct silt_script_end *end)
{
    struct silt_session *s = silt_session_find(c->sandbox, c->arg);
    if (end->code < 0)
        silt_api_refuse_error(c->request, &end->error);
    else if (s == NULL || s->state == SILT_SESSION_DEAD || end->shell_ended)
        refuse_unknown_session(c->request, c->arg);
    else if (end->code > 0 || end->timed_out)
        silt_api_refuse(c->request, SILT_API_COMMAND_FAILED, (silt_slice){NULL, 0},
                        "The shell of session '%s' has refused the variables: %.*s", s->name,
                        (int)(end->err.len < 512 ? end->err.len : 512),
                        end->err.data != NULL ? end->err.data : "");
    else
        silt_api_answer_session(c->request, 200, s);
}

static void change(struct silt_call *c)
{
    struct silt_script_wish w = {.session = c->session,
                                 .foreground = true,
                                 .text = *(silt_slice *)c->own,
                                 .timeout_ms = CHANGE_MS,
                                 .out_max = 4096,
                                 .done = on_changed};
    silt_script_run(c, &w);
}

/* Becomes what the shell runs: `export A='x'`, `unset B`. */
static bool parse_change(struct silt_call *c)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("env"));
    silt_slice env = {NULL, 0}, one, name,
               *text = silt_arena_alloc(c->request->arena, sizeof(*text));
    silt_auto_buf b = {0};
    if (text == NULL)
        abort();
    if (v == NULL || v->type != SILT_JSON_OBJECT) {
        silt_api_refuse_field(c->request, "env", "must be an object of strings; null unsets");
        return false;
    }
    if (!silt_body_env(c, "env", SILT_ENV_MAX, &env))
        return false;
    silt_buf_init(&b, SILT_COMMAND_MAX);
    silt_buf_add(&b, SILT_LIT(":"));
    while (silt_slice_split(&env, 0, &one)) {
        if (!silt_slice_split(&one, '=', &name) || name.len == 0)
            continue;
        silt_buf_add(&b, SILT_LIT(" && \\builtin export "));
        silt_buf_add(&b, name);
        silt_buf_add_byte(&b, '=');
        silt_shell_quote(&b, one);
    }
    for (const struct silt_json *i = v->items.first; i != NULL; i = i->next) {
        if (i->type != SILT_JSON_NULL)
            continue;
        if (!silt_id_is_env_name(i->key)) {
            silt_api_refuse_field(c->request, "env",
                                  "has a name that is not [A-Za-z_][A-Za-z0-9_]*");
            return false;
        }
        silt_buf_add(&b, SILT_LIT(" && \\builtin unset -v "));
        silt_buf_add(&b, i->key);
    }
    char *copy = b.broken ? NULL : silt_arena_dup(c->request->arena, silt_buf_slice(&b));
    if (copy == NULL) {
        silt_api_refuse_field(c->request, "env", "is too large for one change");
        return false;
    }
    *text = (silt_slice){copy, b.len};
    c->own = text;
    return true;
}

static void session_call(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                         const struct silt_call_kind *kind)
{
    silt_slice name;
    if (!silt_query_decode(r, args[1], &name) || name.len > SILT_SESSION_NAME_MAX
        || silt_slice_has_byte(name, 0)) {
        silt_api_refuse_field(r, "sessionId", "is badly escaped or longer than 256 bytes");
        return;
    }
    struct silt_call *c = silt_call_new(r, args, kind);
    if (c == NULL)
        return;
    c->arg = name;
    silt_call_go(c);
}

static const struct silt_call_kind v1_get_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = choose_session, .run = show};

SILT_HANDLER(silt_api_v1_session_get)
{
    session_call(r, args, &v1_get_call);
}

static const struct silt_call_kind v1_change_call = {.body = SILT_BODY_REQUIRED,
                                                     .sandbox = SILT_CALL_LOOKS,
                                                     .native = true,
                                                     .parse = parse_change,
                                                     .choose = choose_session,
                                                     .run = change};

SILT_HANDLER(silt_api_v1_session_change)
{
    session_call(r, args, &v1_change_call);
}

static const struct silt_call_kind v1_delete_call = {.sandbox = SILT_CALL_LOOKS,
                                                     .native = true,
                                                     .choose = choose_session,
                                                     .run = silt_api_delete_session};

SILT_HANDLER(silt_api_v1_session_delete)
{
    session_call(r, args, &v1_delete_call);
}
