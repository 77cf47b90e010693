/* SPDX-License-Identifier: Apache-2.0 */
/* POST …/api/watch/check: whether anything has changed since the version of an earlier response. */
#include "api/file/watch_request.h"

#include <stdio.h>
#include <stdlib.h>

enum { ESTABLISH_MS = 10000, VERSION_SIZE = SILT_WATCH_ID_SIZE + 24 };

struct check {
    struct silt_watch_ask ask;
    silt_slice since, id; /* the client's version token and its first part; empty: none */
    uint64_t counter;
};

struct checking {
    struct silt_listener listener;
    struct silt_http_request *request;
    struct silt_loop *loop;       /* borrowed */
    struct silt_sandbox *sandbox; /* borrowed, held */
    struct silt_timer deadline;
    struct check *check; /* lives as long as the request */
    bool is_new;
};

static void free_checking(struct checking *k)
{
    silt_file_watch_leave(&k->listener);
    silt_loop_cancel(k->loop, &k->deadline);
    silt_sandbox_release(k->sandbox);
    free(k);
}

static void on_gone(struct silt_http_request *r)
{
    free_checking(r->owner);
}

static void version_of(const struct silt_file_watch *w, char out[VERSION_SIZE])
{
    (void)snprintf(out, VERSION_SIZE, "%s:%llu", silt_file_watch_id(w),
                   (unsigned long long)silt_file_watch_count(w));
}

static void refuse_future(struct checking *k, const char *version)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("since"));
    silt_json_string(&b, k->check->since);
    silt_json_key(&b, SILT_LIT("currentVersion"));
    silt_json_string(&b, silt_slice_of(version));
    silt_json_close(&b, '}');
    silt_api_refuse(k->request, SILT_API_VALIDATION_FAILED, silt_buf_slice(&b),
                    "since: is ahead of the current version");
}

static void add_status(struct silt_buf *b, const struct checking *k,
                       const struct silt_file_watch *w)
{
    bool same = silt_slice_eq(k->check->id, silt_slice_of(silt_file_watch_id(w)));
    const char *status = k->check->id.len == 0                          ? "unchanged"
                         : !same                                        ? "resync"
                         : silt_file_watch_count(w) > k->check->counter ? "changed"
                                                                        : "unchanged";
    silt_json_key(b, SILT_LIT("status"));
    silt_json_string(b, silt_slice_of(status));
    if (k->check->id.len == 0 || same)
        return;
    silt_json_key(b, SILT_LIT("reason"));
    silt_json_string(b, k->is_new ? SILT_LIT("expired") : SILT_LIT("restarted"));
}

static void answer(struct checking *k)
{
    struct silt_file_watch *w = k->listener.file_watch;
    char version[VERSION_SIZE];
    silt_auto_buf b;
    silt_buf_init(&b, 4096);
    version_of(w, version);
    silt_file_watch_keep(w);
    k->request->on_gone = NULL;
    if (silt_slice_eq(k->check->id, silt_slice_of(silt_file_watch_id(w)))
        && k->check->counter > silt_file_watch_count(w)) {
        refuse_future(k, version);
        free_checking(k);
        return;
    }
    silt_json_open(&b, '{');
    bool native = k->check->ask.native;
    if (!native)
        silt_json_add_bool(&b, "success", true);
    add_status(&b, k, w);
    silt_json_key(&b, SILT_LIT("version"));
    silt_json_string(&b, silt_slice_of(version));
    if (silt_file_watch_is_partial(w)) {
        silt_json_key(&b, SILT_LIT("partial"));
        silt_json_bool(&b, true);
    }
    if (!native)
        silt_api_timestamp(&b);
    silt_json_close(&b, '}');
    silt_api_answer(k->request, 200, &b);
    free_checking(k);
}

static void on_ready(struct silt_listener *l)
{
    answer(silt_outer(l, struct checking, listener));
}

static void on_event(struct silt_listener *l, uint32_t what, bool is_dir, silt_slice path)
{
    (void)l;
    (void)what;
    (void)is_dir;
    (void)path;
}

static void on_ended(struct silt_listener *l, const struct silt_error *e)
{
    struct checking *k = silt_outer(l, struct checking, listener);
    k->request->on_gone = NULL;
    silt_watch_refuse_failed(k->request, k->check->ask.request.path, e);
    free_checking(k);
}

static void on_deadline(struct silt_timer *t)
{
    struct checking *k = silt_outer(t, struct checking, deadline);
    struct silt_error e;
    (void)silt_fail(&e, SILT_TIMEOUT, "the watch was not established within 10 s");
    on_ended(&k->listener, &e);
}

static void run(struct silt_call *c)
{
    struct silt_error e;
    struct checking *k = calloc(1, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct checking){
        .listener = {.ready = on_ready, .event = on_event, .ended = on_ended},
        .request = c->request,
        .loop = c->api->loop,
        .sandbox = c->sandbox,
        .deadline = {.on_time = on_deadline},
        .check = c->own,
    };
    silt_list_init(&k->listener.link);
    silt_sandbox_hold(k->sandbox);
    c->request->owner = k;
    c->request->on_gone = on_gone;
    if (silt_file_watch_join(k->sandbox, &k->check->ask.request, &k->listener, &k->is_new, &e)
        < 0) {
        on_ended(&k->listener, &e);
        return;
    }
    if (silt_file_watch_is_ready(k->listener.file_watch))
        answer(k);
    else
        silt_loop_after(k->loop, &k->deadline, ESTABLISH_MS);
}

static bool is_number(silt_slice s, uint64_t *ret)
{
    struct silt_error e;
    return silt_slice_to_u64(s, 0, UINT64_MAX, ret, &e) == 0;
}

/* watch-<n>-<ms>:<counter> */
static bool is_version(struct check *k)
{
    silt_slice rest = k->since, part;
    uint64_t ignored;
    if (!silt_slice_split(&rest, ':', &k->id) || !is_number(rest, &k->counter))
        return false;
    rest = k->id;
    return silt_slice_split(&rest, '-', &part) && silt_slice_eq(part, SILT_LIT("watch"))
           && silt_slice_split(&rest, '-', &part) && is_number(part, &ignored)
           && is_number(rest, &ignored);
}

static bool read_since(struct silt_call *c, struct check *k)
{
    const struct silt_json *v = silt_json_get(c->body, SILT_LIT("since"));
    if (v == NULL)
        return true;
    if (v->type == SILT_JSON_STRING)
        k->since = v->string;
    if (v->type == SILT_JSON_STRING && v->string.len > 0 && v->string.len < VERSION_SIZE
        && is_version(k))
        return true;
    silt_watch_refuse(c, (const char *const[]){"since", NULL},
                      "since: is not a version of an earlier answer");
    return false;
}

enum { ANYWHERE = 1 }; /* variant */

static bool parse(struct silt_call *c)
{
    struct check *k = silt_arena_alloc(c->request->arena, sizeof(*k));
    if (k == NULL)
        abort();
    *k = (struct check){
        .ask = {.native = c->kind->native, .anywhere = c->kind->variant == ANYWHERE}};
    c->own = k;
    return silt_watch_ask_read(c, &k->ask) && read_since(c, k);
}

static const struct silt_call_kind check_call = {
    .body = SILT_BODY_REQUIRED, .parse = parse, .run = run};
static const struct silt_call_kind anywhere_call = {
    .body = SILT_BODY_REQUIRED, .variant = ANYWHERE, .parse = parse, .run = run};

static const struct silt_call_kind native_call = {
    .body = SILT_BODY_REQUIRED, .native = true, .parse = parse, .run = run};

SILT_HANDLER(silt_api_v1_watch_check)
{
    silt_call_begin(r, args, &native_call);
}

SILT_HANDLER(silt_api_watch_check)
{
    silt_call_begin(r, args, &check_call);
}

SILT_HANDLER(silt_api_watch_check_anywhere)
{
    silt_call_begin(r, args, &anywhere_call);
}
