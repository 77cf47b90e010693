/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file/file.h"

#include <assert.h>

const char *silt_file_check_path(silt_slice path)
{
    if (path.len == 0)
        return "is required";
    if (path.len > SILT_WORKER_PATH_MAX)
        return "is longer than 4096 bytes";
    return silt_slice_has_byte(path, 0) ? "must not hold a NUL character" : NULL;
}

/* A string member of the body; empty if absent or of another type. */
static silt_slice string_of(struct silt_call *c, const char *name)
{
    const struct silt_json *v = silt_json_get(c->body, silt_slice_of(name));
    return v != NULL && v->type == SILT_JSON_STRING ? v->string : (silt_slice){NULL, 0};
}

static void tell_failed(struct silt_file *f, const struct silt_error *e)
{
    if (f->kind->failed != NULL)
        f->kind->failed(f, e);
    else
        silt_file_refuse(f, e);
}

static bool read_path(struct silt_file *f, const char *field, silt_slice *ret)
{
    if (field == NULL)
        return true;
    *ret = string_of(f->call, field);
    const char *wrong = silt_file_check_path(*ret);
    struct silt_error e;
    if (wrong == NULL)
        return true;
    (void)silt_fail(&e, SILT_INVALID, "Invalid path: %s %s", field, wrong);
    if (f->kind->is_in_band)
        tell_failed(f, &e);
    else
        silt_api_refuse_value(f->request, field, wrong, "INVALID_PATH");
    return false;
}

/* From the body only; `default` if absent. */
static bool read_session(struct silt_file *f)
{
    const struct silt_json *v = silt_json_get(f->call->body, SILT_LIT("sessionId"));
    struct silt_error e;
    f->session_name = SILT_LIT("default");
    if (v == NULL || v->type == SILT_JSON_NULL)
        return true;
    if (!silt_body_string(f->call, "sessionId", &f->session_name))
        return false;
    if (f->session_name.len > SILT_SESSION_NAME_MAX) {
        silt_api_refuse_field(f->request, "sessionId", "is longer than 256 bytes");
        return false;
    }
    if (!silt_is_blank(f->session_name))
        return true;
    (void)silt_fail(&e, SILT_INVALID, "a session id cannot be blank");
    tell_failed(f, &e);
    return false;
}

bool silt_file_place(struct silt_file *f, silt_slice path, silt_slice session)
{
    const char *wrong = silt_file_check_path(path);
    struct silt_error e;
    f->path = path;
    f->session_name = session.data != NULL ? session : SILT_LIT("default");
    if (wrong != NULL) {
        silt_api_refuse_value(f->request, "path", wrong, "INVALID_PATH");
        return false;
    }
    if (f->session_name.len <= SILT_SESSION_NAME_MAX && !silt_is_blank(f->session_name))
        return true;
    (void)silt_fail(&e, SILT_INVALID, "a session id has 1 to 256 bytes and is not blank");
    tell_failed(f, &e);
    return false;
}

static void on_said(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                    bool last)
{
    struct silt_file *f = silt_outer(sink, struct silt_file, sink);
    if (last)
        f->work = NULL;
    f->kind->said(f, type, body, last);
}

static void on_failed(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct silt_file *f = silt_outer(sink, struct silt_file, sink);
    f->work = NULL;
    tell_failed(f, e);
}

static void on_room(struct silt_work_sink *sink)
{
    struct silt_file *f = silt_outer(sink, struct silt_file, sink);
    f->kind->room(f);
}

/* Relative paths start in the directory of the session's shell. */
static void set_base(struct silt_file *f)
{
    struct silt_session *s = f->session;
    f->ask.cwd = SILT_LIT("/workspace");
    if (s == NULL)
        return;
    f->ask.ask.cwd_pid = s->pid;
    if (s->cwd != NULL)
        f->ask.cwd = silt_slice_of(s->cwd);
}

static void start(struct silt_file *f)
{
    struct silt_error e;
    set_base(f);
    f->ask.kind = f->kind->is_paced ? SILT_WORK_PACED : SILT_WORK_SHORT;
    f->ask.op = f->kind->op;
    f->ask.path = f->path;
    f->ask.to = f->to;
    f->ask.patience_ms = SILT_WORK_PATIENCE_MS;
    if (silt_work_start(f->call->sandbox, &f->ask, &f->sink, &f->work, &e) < 0)
        tell_failed(f, &e);
    else if (f->kind->room != NULL)
        f->kind->room(f);
}

static void on_turn(struct silt_turn *t, struct silt_session *s, const struct silt_error *e)
{
    struct silt_file *f = silt_outer(t, struct silt_file, turn);
    if (e == NULL) {
        f->session = s; /* the turn may come before the call returns */
        start(f);
        return;
    }
    f->session = NULL;
    if (s == NULL)
        tell_failed(f, e);
    else if (f->kind->dead != NULL)
        f->kind->dead(f, s);
    else
        silt_file_refuse_dead(f, s);
}

static bool parse(struct silt_call *c)
{
    struct silt_file *f = c->own;
    const struct silt_file_kind *kind = f->kind;
    if (c->body != NULL /* otherwise the route reads the path itself */
        && ((!kind->is_native && !read_session(f)) || !read_path(f, kind->path_field, &f->path)
            || !read_path(f, kind->to_field, &f->to)))
        return false;
    return kind->parse == NULL || kind->parse(f);
}

void silt_file_leave_turn(struct silt_file *f)
{
    struct silt_session *session = f->session;
    f->session = NULL;
    if (session != NULL)
        silt_session_leave(session, &f->turn);
}

struct silt_http_request *silt_file_end(struct silt_file *f)
{
    struct silt_work *work = f->work;
    f->work = NULL;
    f->request->on_gone = NULL;
    f->request->on_drain = NULL;
    if (f->kind->ended != NULL)
        f->kind->ended(f);
    if (work != NULL)
        silt_work_leave(work);
    silt_file_leave_turn(f);
    if (f->holds)
        silt_sandbox_release(f->call->sandbox);
    f->holds = false;
    return f->request;
}

static void on_gone(struct silt_http_request *r)
{
    (void)silt_file_end(r->owner);
}

static void on_drain(struct silt_http_request *r)
{
    struct silt_file *f = r->owner;
    if (f->work != NULL)
        silt_work_pause(f->work, false);
    if (f->kind->drained != NULL)
        f->kind->drained(f);
}

void silt_file_mind_client(struct silt_file *f)
{
    if (f->work == NULL || silt_http_pending(f->request) < SILT_HTTP_MARK)
        return;
    silt_work_pause(f->work, true);
    silt_file_leave_turn(f); /* the file is open: commands need not wait for the client */
}

static void run(struct silt_call *c)
{
    struct silt_file *f = c->own;
    struct silt_session *s =
        f->kind->is_native ? NULL : silt_session_find(c->sandbox, f->session_name);
    silt_sandbox_hold(c->sandbox);
    f->holds = true;
    f->request->owner = f;
    f->request->on_gone = on_gone;
    f->request->on_drain = on_drain;
    f->session = s;
    if (s != NULL)
        silt_session_enter(s, &f->turn);
    else
        start(f);
}

static struct silt_file *new_file(struct silt_call *c, const struct silt_file_kind *kind)
{
    size_t size = kind->size > 0 ? kind->size : sizeof(struct silt_file);
    struct silt_file *f = silt_arena_alloc(c->request->arena, size);
    assert(f != NULL);
    memset((void *)f, 0, size);
    f->kind = kind;
    f->call = c;
    f->request = c->request;
    f->sink = (struct silt_work_sink){.said = on_said, .failed = on_failed, .room = on_room};
    f->turn.go = on_turn;
    silt_list_init(&f->turn.link);
    return f;
}

void silt_file_begin(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                     const struct silt_file_kind *kind)
{
    static const struct silt_call_kind calls[2][2] = {
        {{.parse = parse, .run = run}, {.body = SILT_BODY_REQUIRED, .parse = parse, .run = run}},
        {{.native = true, .parse = parse, .run = run},
         {.native = true, .body = SILT_BODY_REQUIRED, .parse = parse, .run = run}},
    };
    struct silt_call *c = silt_call_new(r, args, &calls[kind->is_native][kind->path_field != NULL]);
    if (c == NULL)
        return;
    c->own = new_file(c, kind);
    silt_call_go(c);
}

void silt_file_answer(struct silt_file *f, struct silt_buf *b)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("success"));
    silt_json_bool(b, true);
    silt_json_key(b, SILT_LIT("path"));
    silt_json_string(b, f->path);
}

void silt_file_finish(struct silt_file *f, struct silt_buf *b)
{
    silt_api_timestamp(b);
    silt_json_close(b, '}');
    silt_api_answer(silt_file_end(f), 200, b);
}

bool silt_file_has(struct silt_file *f, silt_slice body, size_t size)
{
    struct silt_error e;
    if (body.len >= size)
        return true;
    (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
    silt_file_refuse_code(f, SILT_API_FILESYSTEM_ERROR, &e);
    return false;
}
