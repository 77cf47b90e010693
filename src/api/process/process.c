/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/process.h"
#include "base/clock.h"

#include <assert.h>
#include <stdio.h>

enum {
    LIST_MAX = 96 << 20
}; /* the commands of one sandbox with every byte escaped, and the rest */

const char *silt_process_status_name(enum silt_process_status status)
{
    static const char *const names[SILT_PROCESS_STATUS_MAX] = {
        [SILT_PROCESS_STARTING] = "starting",   [SILT_PROCESS_RUNNING] = "running",
        [SILT_PROCESS_COMPLETED] = "completed", [SILT_PROCESS_FAILED] = "failed",
        [SILT_PROCESS_KILLED] = "killed",       [SILT_PROCESS_ERROR] = "error",
    };
    return names[status];
}

static void add_native(struct silt_buf *b, const struct silt_process_row *row)
{
    if (row->signal > 0)
        silt_json_add_i64(b, "signal", row->signal);
    if (row->cause[0] != 0)
        silt_json_add_text(b, "cause", row->cause);
    if (row->remark != NULL)
        silt_json_add_text(b, "message", row->remark);
    if (row->session != NULL)
        silt_json_add_text(b, "sessionId", row->session);
    silt_json_key(b, SILT_LIT("autoCleanup"));
    silt_json_bool(b, row->auto_cleanup);
    silt_json_add_text(b, "kind", "process");
}

void silt_found_json(struct silt_buf *b, const struct silt_found *f)
{
    char id[24];
    (void)snprintf(id, sizeof(id), "pid:%d", (int)f->pid);
    silt_json_open(b, '{');
    silt_json_add_text(b, "id", id);
    silt_json_add_i64(b, "pid", f->pid);
    silt_json_key(b, SILT_LIT("command"));
    silt_json_string(b, f->command);
    silt_json_add_text(b, "status", "running");
    silt_json_key(b, SILT_LIT("startedAt"));
    silt_api_time(b, f->started_ms);
    if (f->session != NULL)
        silt_json_add_text(b, "sessionId", f->session);
    silt_json_add_text(b, "kind", f->kind);
    silt_json_close(b, '}');
}

bool silt_found_read_id(silt_slice id, int32_t *ret_pid)
{
    const silt_slice prefix = SILT_LIT("pid:");
    struct silt_error e;
    uint64_t n;
    if (id.len <= prefix.len || !silt_slice_eq((silt_slice){id.data, prefix.len}, prefix)
        || silt_slice_to_u64((silt_slice){id.data + prefix.len, id.len - prefix.len}, 1, INT32_MAX,
                             &n, &e)
               < 0)
        return false;
    *ret_pid = (int32_t)n;
    return true;
}

void silt_process_json(struct silt_buf *b, const struct silt_process *p,
                       enum silt_process_detail detail)
{
    const struct silt_process_row *row = &p->row;
    bool native = detail == SILT_PROCESS_NATIVE;
    silt_json_open(b, '{');
    silt_json_add_text(b, "id", row->id);
    if (row->pid > 0)
        silt_json_add_i64(b, "pid", row->pid);
    silt_json_add_text(b, "command", row->command != NULL ? row->command : "");
    silt_json_add_text(b, "status", silt_process_status_name(row->status));
    silt_json_key(b, native ? SILT_LIT("startedAt") : SILT_LIT("startTime"));
    silt_api_time(b, row->started_ms);
    if (detail != SILT_PROCESS_LISTED && row->ended_ms > 0) {
        silt_json_key(b, native ? SILT_LIT("endedAt") : SILT_LIT("endTime"));
        silt_api_time(b, row->ended_ms);
    }
    if (row->exit_code >= 0)
        silt_json_add_i64(b, "exitCode", row->exit_code);
    if (native)
        add_native(b, row);
    silt_json_close(b, '}');
}

void silt_process_list_json(struct silt_buf *b, struct silt_sandbox *s, silt_slice status,
                            enum silt_process_detail detail, silt_slice found)
{
    silt_json_key(b, SILT_LIT("processes"));
    silt_json_open(b, '[');
    for (int over = 0; s != NULL && over < 2; over++) {
        if (over == 1 && found.len > 0)
            silt_json_raw(b, found);
        silt_list_each(it, &s->processes)
        {
            struct silt_process *p = silt_outer(it, struct silt_process, link);
            silt_slice name = silt_slice_of(silt_process_status_name(p->row.status));
            if (!silt_process_is_terminal(p) && silt_process_is_over(p) == (over == 1)
                && (status.len == 0 || silt_slice_eq(status, name)))
                silt_process_json(b, p, detail);
        }
    }
    silt_json_close(b, ']');
}

void silt_process_refuse_unknown(struct silt_http_request *r, silt_slice id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 64 << 10);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("processId"));
    silt_json_string(&b, id);
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_PROCESS_NOT_FOUND, silt_buf_slice(&b), "Process '%.*s' not found",
                    (int)(id.len < 256 ? id.len : 256), id.data);
}

/* A call that waits for the recovery of an exit. */

struct settled {
    struct silt_process_watch watch;
    struct silt_call *call;
};

static void on_waiter_gone(struct silt_http_request *r)
{
    struct silt_call *c = r->owner;
    struct settled *w = c->own;
    silt_process_unwatch(&w->watch);
}

static void on_settled(struct silt_process_watch *watch, struct silt_process *p,
                       enum silt_process_event what, const struct silt_error *e)
{
    struct settled *w = silt_outer(watch, struct settled, watch);
    (void)p;
    (void)what;
    (void)e;
    w->call->request->on_gone = NULL;
    silt_call_go(w->call);
}

static bool is_settled(struct silt_call *c, struct silt_process *p)
{
    if (!p->settling)
        return true;
    struct settled *w = silt_arena_alloc(c->request->arena, sizeof(*w));
    assert(w != NULL);
    *w = (struct settled){.watch = {.on_event = on_settled}, .call = c};
    c->own = w;
    c->request->on_gone = on_waiter_gone;
    silt_process_watch(p, &w->watch);
    return false;
}

bool silt_process_choose_all(struct silt_call *c)
{
    if (c->sandbox == NULL)
        return true;
    silt_list_each(it, &c->sandbox->processes)
    {
        if (!is_settled(c, silt_outer(it, struct silt_process, link)))
            return false;
    }
    return true;
}

bool silt_process_choose(struct silt_call *c)
{
    c->process = c->sandbox != NULL ? silt_process_find(c->sandbox, c->arg) : NULL;
    if (c->process != NULL)
        return is_settled(c, c->process);
    silt_process_refuse_unknown(c->request, c->arg);
    return false;
}

bool silt_process_choose_any(struct silt_call *c)
{
    int32_t pid;
    c->process = silt_process_find(c->sandbox, c->arg);
    return (c->process == NULL && silt_found_read_id(c->arg, &pid)) || silt_process_choose(c);
}

void silt_process_call(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                       const struct silt_call_kind *kind)
{
    silt_slice id;
    if (!silt_query_decode(r, args[1], &id)) {
        silt_api_refuse_field(r, "processId", "is badly escaped");
        return;
    }
    struct silt_call *c = silt_call_new(r, args, kind);
    if (c == NULL)
        return;
    c->arg = id;
    silt_call_go(c);
}

/* Compatible routes. */

static void list(struct silt_call *c)
{
    silt_slice status = {NULL, 0};
    silt_slice raw = silt_query(c->request, SILT_LIT("status"));
    if (raw.len > 0 && !silt_query_decode(c->request, raw, &status)) {
        silt_api_refuse_field(c->request, "status", "is badly escaped");
        return;
    }
    silt_auto_buf b;
    silt_buf_init(&b, LIST_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_process_list_json(&b, c->sandbox, status, SILT_PROCESS_LISTED, (silt_slice){NULL, 0});
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind list_call = {
    .sandbox = SILT_CALL_LOOKS, .choose = silt_process_choose_all, .run = list};

SILT_HANDLER(silt_api_process_list)
{
    silt_call_begin(r, args, &list_call);
}

static void get(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, LIST_MAX);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("success"));
    silt_json_bool(&b, true);
    silt_json_key(&b, SILT_LIT("process"));
    silt_process_json(&b, c->process, SILT_PROCESS_SHOWN);
    silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind get_call = {
    .sandbox = SILT_CALL_LOOKS, .choose = silt_process_choose, .run = get};

SILT_HANDLER(silt_api_process_get)
{
    silt_process_call(r, args, &get_call);
}
