/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sandbox/session.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

struct create {
    silt_slice name;
    struct silt_session_options options;
    char generated[64];
    bool native;
    struct silt_call *call; /* NULL: the client has disconnected */
    struct silt_turn turn;
    struct silt_session *session;
};

static void add_ids(struct silt_buf *b, silt_slice name)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("sessionId"));
    silt_json_string(b, name);
    silt_json_key(b, SILT_LIT("containerPlacementId"));
    silt_json_null(b);
    silt_json_close(b, '}');
}

void silt_api_add_session(struct silt_buf *b, const struct silt_session *s, silt_slice cwd)
{
    silt_json_add_text(b, "id", s->name);
    silt_json_key(b, SILT_LIT("cwd"));
    if (s->cwd != NULL)
        silt_json_string(b, silt_slice_of(s->cwd));
    else if (cwd.len > 0)
        silt_json_string(b, cwd);
    else
        silt_json_null(b);
    silt_json_add_bool(b, "busy", s->holder != NULL || s->foreign_exec != 0);
    silt_json_key(b, SILT_LIT("commandTimeoutMs"));
    if (s->timeout_ms > 0)
        silt_json_u64(b, s->timeout_ms);
    else
        silt_json_null(b);
}

void silt_api_answer_session(struct silt_http_request *r, int status, const struct silt_session *s)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_json_open(&b, '{');
    silt_api_add_session(&b, s, (silt_slice){NULL, 0});
    silt_json_close(&b, '}');
    silt_api_answer(r, status, &b);
}

static void answer_created(struct silt_http_request *r, silt_slice name)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, name);
    silt_json_close(&b, '}');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, name);
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, SILT_LIT("Session created"));
    silt_json_key(&b, SILT_LIT("containerPlacementId"));
    silt_json_null(&b);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

/* The shell is open, or could not be opened: a create waits for nothing else. */
static void on_open(struct silt_turn *t, struct silt_session *s, const struct silt_error *e)
{
    struct create *q = silt_outer(t, struct create, turn);
    struct silt_http_request *r = q->call != NULL ? q->call->request : NULL;
    bool native = q->native;
    char name[SILT_SESSION_NAME_MAX + 1];
    (void)snprintf(name, sizeof(name), "%.*s", (int)q->name.len, q->name.data);
    if (s != NULL && e == NULL)
        silt_session_leave(s, t);
    free(q);
    if (r == NULL)
        return;
    r->on_gone = NULL;
    if (e != NULL)
        silt_api_refuse_error(r, e);
    else if (native)
        silt_api_answer_session(r, 201, s);
    else
        answer_created(r, silt_slice_of(name));
}

static void on_creator_gone(struct silt_http_request *r)
{
    struct silt_call *c = r->owner;
    struct create *q = c->own;
    silt_session_leave(q->session, &q->turn);
    free(q);
}

static void create(struct silt_call *c)
{
    struct create *from = c->own;
    struct silt_error e;
    struct silt_session *old = silt_session_find(c->sandbox, from->name);
    if (old != NULL && silt_session_is_live(old)) {
        silt_auto_buf b;
        silt_buf_init(&b, 8192);
        add_ids(&b, from->name);
        silt_api_refuse(c->request, SILT_API_SESSION_EXISTS, silt_buf_slice(&b),
                        "Session '%.*s' already exists", (int)from->name.len, from->name.data);
        return;
    }
    struct create *q = malloc(sizeof(*q));
    if (q == NULL)
        abort();
    *q = *from;
    q->call = c;
    q->turn = (struct silt_turn){.go = on_open};
    q->session = old;
    if (old != NULL && old->state == SILT_SESSION_ASLEEP) {
        silt_session_amend(old, &q->options);
    } else if (silt_session_new(c->sandbox, q->name, &q->options, &q->session, &e) < 0) {
        free(q);
        silt_api_refuse_error(c->request, &e);
        return;
    }
    q->name = silt_slice_of(q->session->name);
    c->own = q;
    c->request->on_gone = on_creator_gone;
    silt_session_enter(q->session, &q->turn);
}

static bool parse_create(struct silt_call *c)
{
    struct create *q = silt_arena_alloc(c->request->arena, sizeof(*q));
    if (q == NULL)
        abort();
    *q = (struct create){.native = c->kind->native};
    if (!silt_body_string(c, "id", &q->name)
        || !silt_body_env(c, "env", SILT_ENV_MAX, &q->options.env)
        || !silt_body_string(c, "cwd", &q->options.cwd)
        || !silt_body_ms(c, "commandTimeoutMs", &q->options.timeout_ms))
        return false;
    if (q->name.len > SILT_SESSION_NAME_MAX || (q->name.len > 0 && silt_is_blank(q->name))) {
        silt_api_refuse_field(c->request, "id", "is longer than 256 bytes, or blank");
        return false;
    }
    if (q->options.cwd.len >= PATH_MAX) {
        silt_api_refuse_field(c->request, "cwd", "is longer than 4095 bytes");
        return false;
    }
    if (silt_slice_eq(q->name, SILT_LIT("__DISABLE_SESSION__"))) {
        silt_api_refuse_field(c->request, "id", "is reserved for running without a session");
        return false;
    }
    if (q->name.len == 0) {
        uint64_t random = 0;
        if (getrandom(&random, 6, 0) != 6)
            abort();
        int n = snprintf(q->generated, sizeof(q->generated), "session_%lld_%012llx",
                         (long long)silt_clock_wall_ms(), (unsigned long long)random);
        q->name = (silt_slice){q->generated, (size_t)n};
    }
    c->own = q;
    return true;
}

static const struct silt_call_kind create_call = {
    .body = SILT_BODY_OPTIONAL, .parse = parse_create, .run = create};

SILT_HANDLER(silt_api_session_create)
{
    silt_call_begin(r, args, &create_call);
}

static const struct silt_call_kind v1_create_call = {
    .body = SILT_BODY_OPTIONAL, .native = true, .parse = parse_create, .run = create};

SILT_HANDLER(silt_api_v1_session_create)
{
    silt_call_begin(r, args, &v1_create_call);
}

static void list(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 256 << 10);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("data"));
    silt_json_open(&b, '[');
    silt_list_each(it, &c->sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->state != SILT_SESSION_DEAD)
            silt_json_string(&b, silt_slice_of(s->name));
    }
    silt_json_close(&b, ']');
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind list_call = {.run = list};

SILT_HANDLER(silt_api_session_list)
{
    silt_call_begin(r, args, &list_call);
}

static void v1_list(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, 16 << 20); /* directories, every byte escaped */
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sessions"));
    silt_json_open(&b, '[');
    silt_list_each(it, &c->sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->state == SILT_SESSION_DEAD)
            continue;
        silt_json_open(&b, '{');
        silt_api_add_session(&b, s, (silt_slice){NULL, 0});
        silt_json_close(&b, '}');
    }
    silt_json_close(&b, ']');
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind v1_list_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .run = v1_list};

SILT_HANDLER(silt_api_v1_session_list)
{
    silt_call_begin(r, args, &v1_list_call);
}

/* Delete waits for its turn, then for the end of the shell. It completes even if the client
 * disconnects. */
struct deletion {
    struct silt_turn turn;
    struct silt_http_request *request; /* NULL: the client has disconnected */
    char name[SILT_SESSION_NAME_MAX + 1];
};

static void answer_deleted(struct silt_http_request *r, silt_slice name)
{
    bool native = silt_api_is_native(r);
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    if (!native)
        silt_json_add_bool(&b, "success", true);
    silt_json_add_slice(&b, "sessionId", name);
    if (!native)
        silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

static void on_delete_turn(struct silt_turn *t, struct silt_session *s, const struct silt_error *e)
{
    struct deletion *d = silt_outer(t, struct deletion, turn);
    if (s != NULL && e == NULL) {
        silt_session_close(s, t);
        return; /* called again without a session */
    }
    if (d->request != NULL) {
        d->request->on_gone = NULL;
        answer_deleted(d->request, silt_slice_of(d->name)); /* gone, one way or another */
    }
    free(d);
}

static void on_deleter_gone(struct silt_http_request *r)
{
    struct deletion *d = r->owner;
    d->request = NULL;
}

void silt_api_delete_session(struct silt_call *c)
{
    silt_slice name = c->kind->native ? c->arg : *(silt_slice *)c->own;
    struct silt_session *s = silt_session_find(c->sandbox, name);
    if (s == NULL) {
        silt_auto_buf b;
        silt_buf_init(&b, 8192);
        silt_json_open(&b, '{');
        silt_json_key(&b, SILT_LIT("sessionId"));
        silt_json_string(&b, name);
        silt_json_key(&b, SILT_LIT("originalError"));
        silt_json_string(&b, SILT_LIT("Session not found"));
        silt_json_close(&b, '}');
        silt_api_refuse(c->request, SILT_API_INTERNAL, silt_buf_slice(&b),
                        "Session '%.*s' not found", (int)name.len, name.data);
        return;
    }
    struct deletion *d = calloc(1, sizeof(*d));
    if (d == NULL)
        abort();
    d->turn.go = on_delete_turn;
    d->request = c->request;
    memcpy(d->name, name.data, name.len);
    c->request->owner = d;
    c->request->on_gone = on_deleter_gone;
    silt_session_enter(s, &d->turn);
}

static bool parse_delete(struct silt_call *c)
{
    silt_slice *name = silt_arena_alloc(c->request->arena, sizeof(*name));
    if (name == NULL)
        abort();
    *name = (silt_slice){NULL, 0};
    if (!silt_body_string(c, "sessionId", name))
        return false;
    if (name->len == 0 || name->len > SILT_SESSION_NAME_MAX) {
        silt_api_refuse(c->request, SILT_API_VALIDATION_FAILED, (silt_slice){NULL, 0},
                        "sessionId is required");
        return false;
    }
    c->own = name;
    return true;
}

static const struct silt_call_kind delete_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse_delete, .run = silt_api_delete_session};

SILT_HANDLER(silt_api_session_delete)
{
    silt_call_begin(r, args, &delete_call);
}
