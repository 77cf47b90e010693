/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreter contexts: create, list, show, delete, restart, interrupt, and answers to their input
 * prompts. */
#include "api/code/context.h"
#include "base/clock.h"

#include <limits.h>
#include <stdlib.h>

static void add_context_id(struct silt_buf *b, silt_slice id)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("contextId"));
    silt_json_string(b, id);
    silt_json_close(b, '}');
}

void silt_context_refuse_unknown(struct silt_http_request *r, silt_slice id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    add_context_id(&b, (silt_slice){id.data, id.len < 256 ? id.len : 256});
    silt_api_refuse(r, SILT_API_CONTEXT_NOT_FOUND, silt_buf_slice(&b), "Context %.*s not found",
                    (int)(id.len < 256 ? id.len : 256), id.data);
}

#define NO_PYTHON                                                                                  \
    "Python interpreter not available. Use the cloudflare/sandbox:<version>-python image variant " \
    "for Python code "                                                                             \
    "execution. See https://developers.cloudflare.com/sandbox/configuration/dockerfile/"
#define NO_JAVASCRIPT                                                                              \
    "Failed to create code context: JavaScript runtime not available. JavaScript/TypeScript code " \
    "execution requires "                                                                          \
    "Node.js or Bun to be installed in the container."

static void refuse_missing(struct silt_http_request *r, enum silt_language l,
                           const struct silt_error *e)
{
    bool python = l == SILT_PYTHON;
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_add_text(&b, "originalError", e->text);
    silt_json_close(&b, '}');
    if (!silt_api_is_native(r))
        silt_api_refuse(r, python ? SILT_API_NO_PYTHON : SILT_API_INTERNAL, silt_buf_slice(&b),
                        "%s", python ? NO_PYTHON : NO_JAVASCRIPT);
    else
        silt_api_refuse(r,
                        python ? SILT_API_PYTHON_NOT_AVAILABLE : SILT_API_JAVASCRIPT_NOT_AVAILABLE,
                        silt_buf_slice(&b), "%s interpreter not available: %s",
                        python ? "Python" : "JavaScript", e->text);
}

void silt_context_refuse(struct silt_http_request *r, enum silt_language l,
                         const struct silt_error *e)
{
    if (e->code == SILT_NOT_FOUND)
        refuse_missing(r, l, e);
    else if (e->code == SILT_INVALID)
        silt_api_refuse_field(r, "cwd", e->text);
    else if (e->code == SILT_CONFLICT) /* deleted meanwhile */
        silt_api_refuse(r, SILT_API_CONTEXT_NOT_FOUND, (silt_slice){NULL, 0}, "%s", e->text);
    else
        silt_api_refuse_error(r, e);
}

bool silt_context_language(struct silt_call *c, silt_slice name, enum silt_language *ret)
{
    if (silt_language_find(name, ret))
        return true;
    silt_api_refuse_field(c->request, "language", "must be python, javascript or typescript");
    return false;
}

struct silt_context *silt_context_of(struct silt_call *c, silt_slice id, bool native)
{
    enum silt_language language;
    struct silt_context *x = silt_context_find(c->sandbox, id);
    if (x == NULL && native && silt_language_find(id, &language))
        x = silt_context_default(c->sandbox, language);
    if (x == NULL)
        silt_context_refuse_unknown(c->request, id);
    return x;
}

static void add_context(struct silt_buf *b, const struct silt_context *x, bool native)
{
    static const char *const states[] = {
        [SILT_CONTEXT_STARTING] = "starting", [SILT_CONTEXT_IDLE] = "idle",
        [SILT_CONTEXT_RUNNING] = "running",   [SILT_CONTEXT_UNSURE] = "running",
        [SILT_CONTEXT_SETTLING] = "idle",     [SILT_CONTEXT_DEAD] = "dead",
    };
    silt_json_key(b, SILT_LIT("language"));
    silt_json_string(b, silt_slice_of(silt_language_name(x->row.language)));
    silt_json_key(b, SILT_LIT("cwd"));
    silt_json_string(b, silt_slice_of(x->row.cwd));
    silt_json_key(b, SILT_LIT("state"));
    silt_json_string(b, silt_slice_of(states[x->state]));
    silt_json_key(b, SILT_LIT("executionCount"));
    silt_json_u64(b, x->row.count);
    silt_json_key(b, SILT_LIT("createdAt"));
    silt_api_time(b, x->row.created_ms);
    silt_json_key(b, native ? SILT_LIT("lastUsedAt") : SILT_LIT("lastUsed"));
    silt_api_time(b, x->row.used_ms);
    if (x->state == SILT_CONTEXT_DEAD) {
        silt_json_key(b, SILT_LIT("cause"));
        silt_json_string(b, silt_slice_of(x->death.cause));
        silt_json_key(b, SILT_LIT("message"));
        silt_json_string(b, silt_slice_of(x->death.message));
    }
}

static void answer_context(struct silt_http_request *r, int status, const struct silt_context *x)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    bool native = silt_api_is_native(r);
    silt_json_open(&b, '{');
    if (!native)
        silt_json_add_bool(&b, "success", true);
    silt_json_add_text(&b, native ? "id" : "contextId", x->row.id);
    add_context(&b, x, native);
    if (!native)
        silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, status, &b);
}

/* ---- create, restart: start a process and wait for its first message ---- */

struct birth {
    struct silt_context_wait wait;
    struct silt_http_request *request;
    struct silt_context *context; /* borrowed, until the result is reported */
    struct silt_sandbox *sandbox; /* borrowed, held */
    enum silt_language language;
    bool is_new;
    int status;
};

static void end_birth(struct birth *b)
{
    b->request->on_gone = NULL;
    silt_sandbox_release(b->sandbox);
    free(b);
}

static void on_born(struct silt_context_wait *w, struct silt_context *x, const struct silt_error *e)
{
    struct birth *b = silt_outer(w, struct birth, wait);
    struct silt_http_request *r = b->request;
    enum silt_language language = b->language;
    int status = b->status;
    end_birth(b);
    if (x != NULL)
        answer_context(r, status, x);
    else
        silt_context_refuse(r, language, e);
}

/* The client never learned the id of the new context: delete it. */
static void on_creator_gone(struct silt_http_request *r)
{
    struct birth *b = r->owner;
    silt_context_unwait(&b->wait);
    if (b->is_new)
        silt_context_remove(b->context, NULL);
    end_birth(b);
}

static struct birth *begin_birth(struct silt_call *c, enum silt_language language, int status)
{
    struct birth *b = calloc(1, sizeof(*b));
    if (b == NULL)
        abort();
    *b = (struct birth){.wait = {.on_done = on_born},
                        .request = c->request,
                        .sandbox = c->sandbox,
                        .language = language,
                        .status = status};
    silt_sandbox_hold(c->sandbox);
    c->request->owner = b;
    c->request->on_gone = on_creator_gone;
    return b;
}

struct creation {
    struct silt_context_options options;
    int status;
};

static void create(struct silt_call *c)
{
    struct creation *q = c->own;
    struct silt_error e;
    struct birth *b = begin_birth(c, q->options.language, q->status);
    b->is_new = true;
    if (silt_context_new(c->sandbox, &q->options, &b->wait, &b->context, &e) == 0)
        return;
    end_birth(b);
    silt_context_refuse(c->request, q->options.language, &e);
}

/* Of compatible clients, which have written them in several ways. */
static bool read_old_options(struct silt_call *c, struct silt_context_options *o)
{
    return silt_body_env(c, "envVars", SILT_SANDBOX_ENV_MAX, &o->env)
           && silt_body_env(c, "env_vars", SILT_SANDBOX_ENV_MAX, &o->env)
           && silt_body_ms(c, "timeout", &o->timeout_ms);
}

static bool read_options(struct silt_call *c, struct silt_context_options *o)
{
    silt_slice language = SILT_LIT("python");
    if (!silt_body_string(c, "language", &language)
        || !silt_context_language(c, language, &o->language) || !silt_body_string(c, "cwd", &o->cwd)
        || (c->kind->native && !silt_body_env(c, "env", SILT_SANDBOX_ENV_MAX, &o->env))
        || (!c->kind->native && !read_old_options(c, o))
        || !silt_body_ms(c, "timeoutMs", &o->timeout_ms))
        return false;
    if (o->cwd.len < PATH_MAX && (o->cwd.len == 0 || o->cwd.data[0] == '/')
        && !silt_slice_has_byte(o->cwd, 0))
        return true;
    silt_api_refuse_field(c->request, "cwd", "must be an absolute path of at most 4095 bytes");
    return false;
}

static bool parse_create(struct silt_call *c)
{
    struct creation *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct creation){.status = c->kind->native ? 201 : 200};
    c->own = q;
    return read_options(c, &q->options);
}

static const struct silt_call_kind create_call = {
    .body = SILT_BODY_OPTIONAL, .parse = parse_create, .run = create};
static const struct silt_call_kind v1_create_call = {
    .body = SILT_BODY_OPTIONAL, .native = true, .parse = parse_create, .run = create};

SILT_HANDLER(silt_api_context_create)
{
    silt_call_begin(r, args, &create_call);
}

SILT_HANDLER(silt_api_v1_context_create)
{
    silt_call_begin(r, args, &v1_create_call);
}

static void restart(struct silt_call *c)
{
    struct silt_context *x = silt_context_of(c, c->arg, true);
    if (x == NULL)
        return;
    struct birth *b = begin_birth(c, x->row.language, 200);
    silt_context_restart(x, &b->wait);
}

/* ---- list, show ---- */

static void answer_list(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4 << 20); /* directories, every byte escaped */
    silt_json_open(&b, '{');
    if (!c->kind->native)
        silt_json_add_bool(&b, "success", true);
    silt_json_key(&b, SILT_LIT("contexts"));
    silt_json_open(&b, '[');
    silt_list_each(it, &c->sandbox->contexts)
    {
        const struct silt_context *x = silt_outer(it, struct silt_context, link);
        if (x->removing)
            continue;
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("id"));
        silt_json_string(&b, silt_slice_of(x->row.id));
        add_context(&b, x, c->kind->native);
        silt_json_close(&b, '}');
    }
    silt_json_close(&b, ']');
    if (!c->kind->native)
        silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind list_call = {.run = answer_list};

SILT_HANDLER(silt_api_context_list)
{
    silt_call_begin(r, args, &list_call);
}

static const struct silt_call_kind v1_list_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = answer_list};

SILT_HANDLER(silt_api_v1_context_list)
{
    silt_call_begin(r, args, &v1_list_call);
}

static void look(struct silt_call *c)
{
    struct silt_context *x = silt_context_of(c, c->arg, true);
    if (x != NULL)
        answer_context(c->request, 200, x);
}

/* ---- delete: answered once no process of it is left ---- */

struct deletion {
    struct silt_context_wait wait;
    struct silt_http_request *request;
    struct silt_sandbox *sandbox; /* borrowed, held */
    char id[SILT_CONTEXT_ID_SIZE];
};

static void answer_deleted(struct silt_http_request *r, silt_slice id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    bool native = silt_api_is_native(r);
    silt_json_open(&b, '{');
    if (!native)
        silt_json_add_bool(&b, "success", true);
    silt_json_add_slice(&b, "contextId", id);
    if (!native)
        silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void end_deletion(struct deletion *d)
{
    d->request->on_gone = NULL;
    silt_sandbox_release(d->sandbox);
    free(d);
}

static void on_removed(struct silt_context_wait *w, struct silt_context *x,
                       const struct silt_error *e)
{
    struct deletion *d = silt_outer(w, struct deletion, wait);
    struct silt_http_request *r = d->request;
    char id[SILT_CONTEXT_ID_SIZE];
    (void)x;
    (void)e;
    memcpy(id, d->id, sizeof(id));
    end_deletion(d); /* first: an answered request is no longer ours */
    answer_deleted(r, silt_slice_of(id));
}

static void on_deleter_gone(struct silt_http_request *r)
{
    struct deletion *d = r->owner;
    silt_context_unwait(&d->wait);
    end_deletion(d);
}

static void delete (struct silt_call *c)
{
    struct silt_context *x = c->sandbox != NULL ? silt_context_find(c->sandbox, c->arg) : NULL;
    if (x == NULL) {
        silt_context_refuse_unknown(c->request, c->arg);
        return;
    }
    struct deletion *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    *d = (struct deletion){
        .wait = {.on_done = on_removed}, .request = c->request, .sandbox = c->sandbox};
    memcpy(d->id, x->row.id, sizeof(d->id));
    silt_sandbox_hold(c->sandbox);
    c->request->owner = d;
    c->request->on_gone = on_deleter_gone;
    silt_context_remove(x, &d->wait);
}

/* ---- requests to one context ---- */

static void interrupt(struct silt_call *c)
{
    silt_auto_buf b = {0};
    struct silt_context *x = silt_context_of(c, c->arg, true);
    if (x == NULL)
        return;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_add_bool(&b, "interrupted", silt_context_interrupt(x));
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

struct answer {
    silt_slice text;
    bool eof;
};

static void input(struct silt_call *c)
{
    struct answer *q = c->own;
    struct silt_context *x = silt_context_of(c, c->arg, true);
    silt_slice text = q->eof ? (silt_slice){NULL, 0} : q->text;
    if (x == NULL)
        return;
    if (silt_code_run_answer_in(x, text))
        answer_deleted(c->request, silt_slice_of(x->row.id));
    else
        silt_api_refuse(c->request, SILT_API_NO_QUESTION, (silt_slice){NULL, 0},
                        "No code in context %s waits for input", x->row.id);
}

static bool parse_input(struct silt_call *c)
{
    struct answer *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct answer){.text = SILT_LIT("")};
    if (!silt_body_string(c, "text", &q->text) || !silt_body_bool(c, "eof", &q->eof))
        return false;
    if (q->text.len > SILT_CODE_BYTES_MAX) {
        silt_api_refuse_field(c->request, "text", "is longer than 16 MiB");
        return false;
    }
    c->own = q;
    return true;
}

static const struct silt_call_kind delete_call = {.sandbox = SILT_CALL_LOOKS, .run = delete};

SILT_HANDLER(silt_api_context_delete)
{
    silt_call_begin(r, args, &delete_call);
}

static const struct silt_call_kind v1_delete_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = delete};

SILT_HANDLER(silt_api_v1_context_delete)
{
    silt_call_begin(r, args, &v1_delete_call);
}

static const struct silt_call_kind v1_get_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = look};

SILT_HANDLER(silt_api_v1_context_get)
{
    silt_call_begin(r, args, &v1_get_call);
}

static const struct silt_call_kind v1_interrupt_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = interrupt};

SILT_HANDLER(silt_api_v1_context_interrupt)
{
    silt_call_begin(r, args, &v1_interrupt_call);
}

static const struct silt_call_kind v1_restart_call = {.native = true, .run = restart};

SILT_HANDLER(silt_api_v1_context_restart)
{
    silt_call_begin(r, args, &v1_restart_call);
}

static const struct silt_call_kind v1_input_call = {.body = SILT_BODY_REQUIRED,
                                                    .sandbox = SILT_CALL_LOOKS,
                                                    .native = true,
                                                    .parse = parse_input,
                                                    .run = input};

SILT_HANDLER(silt_api_v1_context_input)
{
    silt_call_begin(r, args, &v1_input_call);
}

static void answer_healthy(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, SILT_LIT("healthy"));
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind health_call = {.sandbox = SILT_CALL_NO_SANDBOX,
                                                  .run = answer_healthy};

SILT_HANDLER(silt_api_interpreter_health)
{
    silt_call_begin(r, args, &health_call);
}
