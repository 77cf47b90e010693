/* SPDX-License-Identifier: Apache-2.0 */
/* The /v1 routes of processes, with features the compatible routes lack. */
#include "api/process/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FOUND_JSON_MAX = SILT_FOUND_MAX * (SILT_FOUND_TEXT_MAX * 6 + 2048),
    LIST_MAX = (96 << 20) + FOUND_JSON_MAX,
    GRACE_MAX_MS = 600000,
};

bool silt_query_number(struct silt_call *c, const char *name, uint64_t max, uint64_t *ret)
{
    struct silt_error e;
    char why[64];
    silt_slice text = silt_query(c->request, silt_slice_of(name));
    if (text.data == NULL || silt_slice_to_u64(text, 0, max, ret, &e) == 0)
        return true;
    (void)snprintf(why, sizeof(why), "must be a number, at most %llu", (unsigned long long)max);
    silt_api_refuse_field(c->request, name, why);
    return false;
}

/* List, show. */

struct listing {
    struct silt_call *call;
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_sweep sweep;
    struct silt_timer deadline;
    struct silt_buf found;
};

static void free_listing(struct listing *l)
{
    silt_sweep_leave(&l->sweep);
    silt_loop_cancel(l->sandbox->registry->loop, &l->deadline);
    silt_sandbox_release(l->sandbox);
    silt_buf_fini(&l->found);
    free(l);
}

static void on_lister_gone(struct silt_http_request *r)
{
    free_listing(r->owner);
}

static void answer_list(struct listing *l)
{
    struct silt_http_request *r = l->call->request;
    silt_auto_buf b;
    silt_buf_init(&b, LIST_MAX);
    silt_json_open(&b, '{');
    silt_process_list_json(&b, l->sandbox, silt_query(r, SILT_LIT("status")), SILT_PROCESS_NATIVE,
                           silt_buf_slice(&l->found));
    silt_json_close(&b, '}');
    r->on_gone = NULL;
    free_listing(l);
    silt_api_answer(r, 200, &b);
}

static void on_list_late(struct silt_timer *t)
{
    answer_list(silt_outer(t, struct listing,
                           deadline)); /* processes with a record are known without the sweep */
}

static void on_found(struct silt_sweep *w, const struct silt_found *f)
{
    if (f->pid > 0)
        silt_found_json(&silt_outer(w, struct listing, sweep)->found, f);
}

static void on_found_all(struct silt_sweep *w, const struct silt_agent_swept *swept,
                         const struct silt_error *e)
{
    (void)swept;
    (void)e;
    answer_list(silt_outer(w, struct listing, sweep));
}

static void list(struct silt_call *c)
{
    enum { LATE_MS = 5000 };
    const struct silt_agent_sweep look = {0};
    struct listing *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct listing){.call = c,
                          .sandbox = c->sandbox,
                          .sweep = {.on_found = on_found, .on_done = on_found_all},
                          .deadline = {.on_time = on_list_late}};
    silt_buf_init(&l->found, FOUND_JSON_MAX);
    silt_sandbox_hold(l->sandbox);
    c->request->owner = l;
    c->request->on_gone = on_lister_gone;
    silt_slice status = silt_query(c->request, SILT_LIT("status"));
    bool running = status.len == 0 || silt_slice_eq(status, SILT_LIT("running"));
    if (running && silt_sweep_start(l->sandbox, &look, &l->sweep))
        silt_loop_after(c->api->loop, &l->deadline, LATE_MS);
    else
        answer_list(l);
}

static const struct silt_call_kind list_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose_all, .run = list};

SILT_HANDLER(silt_api_v1_process_list)
{
    silt_call_begin(r, args, &list_call);
}

static void get(struct silt_call *c)
{
    silt_auto_buf b;
    silt_buf_init(&b, LIST_MAX);
    silt_process_json(&b, c->process, SILT_PROCESS_NATIVE);
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind get_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose, .run = get};

SILT_HANDLER(silt_api_v1_process_get)
{
    silt_process_call(r, args, &get_call);
}

/* Start. */

static bool read_session(struct silt_call *c, struct silt_process_wish *w)
{
    silt_slice name = {NULL, 0};
    if (!silt_session_name_read(c, &name))
        return false;
    if (name.data != NULL && (w->command.request.flags & SILT_START_ARGV)) {
        silt_api_refuse_field(c->request, "sessionId", "is a shell, and argv wants none");
        return false;
    }
    w->command.choice = (struct silt_session_choice){
        .name = name, .given = name.data != NULL, .plain = name.data == NULL};
    return true;
}

static bool read_wish(struct silt_call *c, struct silt_process_wish *w)
{
    bool input = false;
    if (!silt_command_read_native(c, &w->command) || !silt_body_bool(c, "stdin", &input)
        || !silt_body_bool(c, "autoCleanup", &w->request.auto_cleanup)
        || !silt_process_read_id(c, &w->request.id) || !read_session(c, w))
        return false;
    w->command.request.flags |= input ? SILT_START_STDIN : 0U;
    return true;
}

static bool parse(struct silt_call *c)
{
    struct silt_process_wish *w = silt_process_wish_new(c);
    return read_wish(c, w) && silt_command_is_whole(c, &w->command);
}

static const struct silt_call_kind start_call = {.body = SILT_BODY_REQUIRED,
                                                 .native = true,
                                                 .parse = parse,
                                                 .choose = silt_command_choose,
                                                 .run = silt_process_begin};

SILT_HANDLER(silt_api_v1_process_start)
{
    silt_call_begin(r, args, &start_call);
}

/* End, signal. */

static void remove_record(struct silt_call *c, struct silt_process *p)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, silt_slice_of(p->row.id));
    silt_json_key(&b, SILT_LIT("removed"));
    silt_json_bool(&b, true);
    silt_json_close(&b, '}');
    silt_process_remove(p);
    silt_api_answer(c->request, 200, &b);
}

static void end(struct silt_call *c)
{
    uint64_t grace_ms = SILT_PROCESS_GRACE_MS;
    int signal = SIGTERM;
    if (!silt_signal_read(c, &signal) || !silt_query_number(c, "graceMs", GRACE_MAX_MS, &grace_ms))
        return;
    if (grace_ms == 0)
        signal = SIGKILL;
    if (c->process == NULL)
        silt_found_end(c, signal, (uint32_t)grace_ms);
    else if (silt_process_is_over(c->process))
        remove_record(c, c->process);
    else
        silt_process_end(c, signal, (uint32_t)grace_ms);
}

static const struct silt_call_kind end_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose_any, .run = end};

SILT_HANDLER(silt_api_v1_process_kill)
{
    silt_process_call(r, args, &end_call);
}

static void send_signal(struct silt_call *c)
{
    struct silt_process *p = c->process;
    int signal = 0;
    if (!silt_signal_read(c, &signal))
        return;
    if (signal == 0) {
        silt_api_refuse_field(c->request, "signal", "is required");
        return;
    }
    if (p == NULL) {
        silt_found_signal(c, signal);
        return;
    }
    if (silt_process_is_over(p)) {
        silt_process_refuse_finished(c, p);
        return;
    }
    silt_process_kill(p, signal, 0);
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("id"));
    silt_json_string(&b, silt_slice_of(p->row.id));
    silt_json_key(&b, SILT_LIT("signal"));
    silt_json_i64(&b, signal);
    silt_json_close(&b, '}');
    silt_api_answer(c->request, 200, &b);
}

static const struct silt_call_kind signal_call = {.body = SILT_BODY_OPTIONAL,
                                                  .sandbox = SILT_CALL_LOOKS,
                                                  .native = true,
                                                  .choose = silt_process_choose_any,
                                                  .run = send_signal};

SILT_HANDLER(silt_api_v1_process_signal)
{
    silt_process_call(r, args, &signal_call);
}
