/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/process/start, its /v1 variant, and execute with background: true: answers as soon as
 * the process runs. */
#include "api/process/process.h"

#include <stdlib.h>

enum { ANSWER_MAX = SILT_COMMAND_MAX * 7 };

struct starting {
    struct silt_process_watch watch;
    struct silt_http_request *request; /* until on_gone */
    struct silt_command command;       /* slices live with the request */
    struct silt_sandbox *sandbox;      /* borrowed, held */
    struct silt_process *process;      /* borrowed: watched */
    bool native;
};

static void free_starting(struct starting *t)
{
    silt_sandbox_release(t->sandbox);
    free(t);
}

static void on_gone(struct silt_http_request *r)
{
    struct starting *t = r->owner;
    silt_process_unwatch(&t->watch);
    free_starting(t);
}

static void answer_started(struct starting *t, struct silt_http_request *r,
                           const struct silt_process *p)
{
    silt_auto_buf b;
    silt_buf_init(&b, ANSWER_MAX);
    if (t->native) {
        silt_process_json(&b, p, SILT_PROCESS_NATIVE);
        silt_api_answer(r, 201, &b);
        return;
    }
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, silt_slice_of(p->row.id));
    if (p->row.pid > 0) {
        silt_json_key(&b, SILT_LIT("pid"));
        silt_json_i64(&b, p->row.pid);
    }
    silt_json_key(&b, SILT_LIT("command"));
    silt_json_string(&b, t->command.request.command);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(r, 200, &b);
}

void silt_process_refuse_start(struct silt_http_request *r, const struct silt_command *m,
                               silt_slice id, const struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    if (e->code != SILT_CONFLICT) {
        silt_command_refuse_failed(r, m, SILT_API_STREAM_START, e);
        return;
    }
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, id);
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_PROCESS_BUSY, silt_buf_slice(&b), "%s", e->text);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct starting *t = silt_outer(w, struct starting, watch);
    struct silt_http_request *r = t->request;
    struct silt_agent_end end = {.code = p->row.exit_code, .flags = SILT_END_SHELL};
    r->on_gone = NULL;
    switch (what) {
    case SILT_PROCESS_STARTED:
    case SILT_PROCESS_ENDED:
        answer_started(t, r, p);
        break;
    case SILT_PROCESS_NOT_STARTED:
        silt_process_refuse_start(r, &t->command, silt_slice_of(p->row.id), e);
        break;
    case SILT_PROCESS_NO_SHELL:
        silt_command_refuse_shell(r, &t->command, t->sandbox, &end);
        break;
    }
    free_starting(t);
}

void silt_process_begin(struct silt_call *c)
{
    struct silt_process_wish *w = silt_outer(c->own, struct silt_process_wish, command);
    struct silt_error e;
    struct starting *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct starting){.watch = {.on_event = on_event},
                           .request = c->request,
                           .command = w->command,
                           .sandbox = c->sandbox,
                           .native = c->kind->native};
    if (c->session != NULL)
        w->request.session = w->command.choice.name;
    w->request.exec = w->command.request;
    silt_sandbox_hold(t->sandbox);
    c->request->owner = t;
    c->request->on_gone = on_gone;
    if (silt_process_start(t->sandbox, c->session, &w->request, &t->watch, &t->process, &e) == 0)
        return;
    c->request->on_gone = NULL;
    silt_process_refuse_start(c->request, &w->command, w->request.id, &e);
    free_starting(t);
}

struct silt_process_wish *silt_process_wish_new(struct silt_call *c)
{
    struct silt_process_wish *w = silt_arena_alloc(c->request->arena, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct silt_process_wish){0};
    c->own = &w->command;
    return w;
}

bool silt_process_read_id(struct silt_call *c, silt_slice *ret)
{
    silt_slice id = {NULL, 0};
    if (!silt_body_string(c, "processId", &id))
        return false;
    if (id.data != NULL && !silt_process_id_is_good(id)) {
        silt_api_refuse_field(c->request, "processId",
                              "must have 1 to 128 characters of A-Z a-z 0-9 . _ : @ - and be none "
                              "of start, list, kill-all, . and ..");
        return false;
    }
    *ret = id;
    return true;
}

static bool parse(struct silt_call *c)
{
    struct silt_process_wish *w = silt_process_wish_new(c);
    const struct silt_json *session = silt_json_get(c->body, SILT_LIT("sessionId"));
    if (!silt_command_read(c, &w->command) || !silt_process_read_id(c, &w->request.id)
        || !silt_body_bool(c, "autoCleanup", &w->request.auto_cleanup))
        return false;
    if (session != NULL && session->type == SILT_JSON_STRING && session->string.len == 0)
        w->command.choice.blank = true; /* here an empty session name differs from an absent one */
    return silt_command_is_whole(c, &w->command);
}

static const struct silt_call_kind start_call = {.body = SILT_BODY_REQUIRED,
                                                 .parse = parse,
                                                 .choose = silt_command_choose,
                                                 .run = silt_process_begin};

SILT_HANDLER(silt_api_process_start)
{
    silt_call_begin(r, args, &start_call);
}

bool silt_process_parse_background(struct silt_call *c, const struct silt_command *m)
{
    struct silt_process_wish *w = silt_process_wish_new(c);
    w->command = *m;
    c->kind = &start_call;
    return silt_process_read_id(c, &w->request.id)
           && silt_body_bool(c, "autoCleanup", &w->request.auto_cleanup)
           && silt_command_is_whole(c, &w->command);
}
