/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/wait: a long poll for the end of a process, for a line of its output, or for a port that it
 * serves. */
#include "api/process/process.h"
#include "sandbox/process/port_wait.h"

#include <stdlib.h>

enum {
    TIMEOUT_MS = 30000,
    TIMEOUT_MAX_MS = 600000,
    LINE_MAX_BYTES = 8 << 10, /* only the start of a longer line is compared */
    PATTERN_MAX = 256,
    WORK_MAX = 1 << 20, /* comparisons per turn of the loop */
};

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

struct wait {
    struct silt_process_watch watch;
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follow; /* waiting for a line; NULL: for the end or a port */
    struct silt_port_wait port;
    uint32_t http_status;              /* the port's HTTP status */
    struct silt_http_request *request; /* until on_gone */
    struct silt_loop *loop;            /* borrowed */
    struct silt_process *process;      /* borrowed: watched or followed */
    struct silt_timer deadline, rest;
    silt_slice text, pattern; /* of a line; live with the request */
    struct line lines[2];
    uint64_t cursor;
    size_t work; /* in this turn */
};

static struct silt_http_request *let_go(struct wait *w)
{
    struct silt_http_request *r = w->request;
    r->on_gone = NULL;
    r->on_halved = NULL;
    silt_port_wait_leave(&w->port);
    silt_loop_cancel(w->loop, &w->deadline);
    silt_loop_cancel(w->loop, &w->rest);
    silt_process_unwatch(&w->watch);
    free(w);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    struct wait *w = r->owner;
    if (w->follow != NULL)
        silt_log_follower_stop(w->follow);
    (void)let_go(w);
}

/* `why`: NULL on success. `line` may be empty. */
static void answer(struct wait *w, const char *why, const struct line *line)
{
    const struct silt_process_row *row = &w->process->row;
    silt_auto_buf b;
    silt_buf_init(&b, 256 << 10);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("reached"));
    silt_json_bool(&b, why == NULL);
    if (why != NULL) {
        silt_json_key(&b, SILT_LIT("reason"));
        silt_json_string(&b, silt_slice_of(why));
    }
    if (line != NULL) {
        silt_json_key(&b, SILT_LIT("line"));
        silt_json_string(&b, (silt_slice){line->text, line->len});
        silt_json_key(&b, SILT_LIT("cursor"));
        silt_json_u64(&b, w->cursor);
    }
    if (w->http_status > 0) {
        silt_json_key(&b, SILT_LIT("statusCode"));
        silt_json_u64(&b, w->http_status);
    }
    silt_json_key(&b, SILT_LIT("status"));
    silt_json_string(&b, silt_slice_of(silt_process_status_name(row->status)));
    if (row->exit_code >= 0) {
        silt_json_key(&b, SILT_LIT("exitCode"));
        silt_json_i64(&b, row->exit_code);
    }
    silt_json_close(&b, '}');
    if (w->follow != NULL)
        silt_log_follower_stop(w->follow);
    silt_api_answer(let_go(w), 200, &b);
}

/* `*` matches any text, `?` any byte; the whole line must match. */
static bool fits(silt_slice pattern, silt_slice s, size_t *work)
{
    size_t p = 0, i = 0, star = SIZE_MAX, from = 0;
    while (i < s.len) {
        ++*work;
        if (p < pattern.len && pattern.data[p] == '*') {
            star = p++;
            from = i;
        } else if (p < pattern.len && (pattern.data[p] == '?' || pattern.data[p] == s.data[i])) {
            p++;
            i++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            i = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.data[p] == '*')
        p++;
    return p == pattern.len;
}

static bool is_it(struct wait *w, const struct line *l)
{
    silt_slice s = {l->text, l->len};
    if (w->pattern.data != NULL)
        return fits(w->pattern, s, &w->work);
    w->work += s.len;
    return w->text.len == 0 || memmem(s.data, s.len, w->text.data, w->text.len) != NULL;
}

/* False: found, and the wait is over. */
static bool look_at_pieces(struct wait *w, struct line *l, silt_slice bytes)
{
    while (bytes.len > 0) {
        const char *newline = memchr(bytes.data, '\n', bytes.len);
        size_t n = newline != NULL ? (size_t)(newline - bytes.data) : bytes.len;
        size_t room = LINE_MAX_BYTES - l->len;
        memcpy(l->text + l->len, bytes.data, n < room ? n : room);
        l->len += n < room ? n : room;
        if (newline == NULL)
            return true;
        if (is_it(w, l)) {
            answer(w, NULL, l);
            return false;
        }
        l->len = 0;
        bytes = (silt_slice){newline + 1, bytes.len - n - 1};
    }
    return true;
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct wait *w = silt_outer(sink, struct wait, sink);
    w->cursor = piece->after;
    (void)look_at_pieces(w, &w->lines[piece->stream - 1], piece->bytes);
}

static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    struct wait *w = silt_outer(sink, struct wait, sink);
    (void)bytes;
    (void)why;
    w->cursor = cursor;
    w->lines[0].len = w->lines[1].len = 0; /* incomplete lines are no longer lines */
}

/* A prompt has no newline: text without one counts as a line when nothing more comes. */
static bool look_at_unfinished(struct wait *w)
{
    for (int i = 0; i < 2; i++)
        if (w->lines[i].len > 0 && is_it(w, &w->lines[i])) {
            answer(w, NULL, &w->lines[i]);
            return true;
        }
    return false;
}

static void on_idle(struct silt_log_follower_sink *sink)
{
    (void)look_at_unfinished(silt_outer(sink, struct wait, sink));
}

static void on_rest(struct silt_timer *t)
{
    struct wait *w = silt_outer(t, struct wait, rest);
    w->work = 0;
    silt_log_follower_resume(w->follow);
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    struct wait *w = silt_outer(sink, struct wait, sink);
    if (w->work < WORK_MAX)
        return false;
    silt_loop_after(w->loop, &w->rest, 0);
    return true;
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct wait *w = silt_outer(sink, struct wait, sink);
    (void)cursor;
    w->follow = NULL;
    if (!look_at_unfinished(w))
        answer(w, "exited", NULL);
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct wait *w = silt_outer(sink, struct wait, sink);
    w->follow = NULL;
    if (e->code == SILT_INVALID)
        silt_api_refuse_field(let_go(w), "cursor", "no record of this log begins there");
    else
        silt_api_refuse_error(let_go(w), e);
}

static void on_event(struct silt_process_watch *watch, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct wait *w = silt_outer(watch, struct wait, watch);
    (void)e;
    if (what == SILT_PROCESS_STARTED)
        silt_process_watch(p, watch);
    else
        answer(w, NULL, NULL);
}

static void on_deadline(struct silt_timer *t)
{
    answer(silt_outer(t, struct wait, deadline), "timeout", NULL);
}

static struct wait *new_wait(struct silt_call *c, struct silt_process *p, uint64_t timeout_ms)
{
    struct wait *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    w->watch.on_event = on_event;
    silt_list_init(&w->watch.link);
    w->request = c->request;
    w->loop = c->api->loop;
    w->process = p;
    w->deadline.on_time = on_deadline;
    w->rest.on_time = on_rest;
    c->request->owner = w;
    c->request->on_gone = on_gone;
    silt_loop_after(w->loop, &w->deadline, (int64_t)timeout_ms);
    return w;
}

static void wait_for_exit(struct silt_call *c, struct silt_process *p, uint64_t timeout_ms)
{
    struct wait *w = new_wait(c, p, timeout_ms);
    if (silt_process_is_over(p))
        answer(w, NULL, NULL);
    else
        silt_process_watch(p, &w->watch);
}

static bool read_text(struct silt_call *c, const char *name, silt_slice *ret)
{
    silt_slice raw = silt_query(c->request, silt_slice_of(name));
    if (raw.data == NULL)
        return true;
    if (raw.len > 0 && silt_query_decode(c->request, raw, ret) && ret->len <= PATTERN_MAX)
        return true;
    silt_api_refuse_field(c->request, name, "must have 1 to 256 bytes, and be well escaped");
    return false;
}

static void wait_for_line(struct silt_call *c, struct silt_process *p, uint64_t timeout_ms)
{
    silt_slice text = {NULL, 0}, pattern = {NULL, 0};
    struct silt_log_follower_options o = {0};
    if (!read_text(c, "text", &text) || !read_text(c, "pattern", &pattern)
        || !silt_cursor_read(c, &o))
        return;
    if ((text.data == NULL) == (pattern.data == NULL)) {
        silt_api_refuse_field(c->request, "text", "or pattern is required, and only one of them");
        return;
    }
    struct wait *w = new_wait(c, p, timeout_ms);
    w->text = text;
    w->pattern = pattern;
    w->sink = (struct silt_log_follower_sink){.output = on_output,
                                              .gap = on_gap,
                                              .idle = on_idle,
                                              .full = is_full,
                                              .over = on_over,
                                              .failed = on_failed};
    w->follow = silt_log_follower_start(p, &o, &w->sink);
}

/* ---- a port ---- */

static void on_reached(struct silt_port_wait *p, uint32_t status)
{
    struct wait *w = silt_outer(p, struct wait, port);
    w->http_status = status;
    answer(w, NULL, NULL);
}

static void on_exited(struct silt_port_wait *p, int32_t code)
{
    (void)code;
    answer(silt_outer(p, struct wait, port), "exited", NULL);
}

static void on_port_failed(struct silt_port_wait *p, const struct silt_error *e)
{
    silt_api_refuse_error(let_go(silt_outer(p, struct wait, port)), e);
}

/* Most clients that half-close have left, and few waits for ports can run at once. */
static void on_halved(struct silt_http_request *r)
{
    answer(r->owner, "timeout", NULL);
}

static bool read_port(struct silt_call *c, struct silt_port_request *q)
{
    enum { INTERVAL_MS = 100 };
    uint64_t port = 0, min = 200, max = 399;
    silt_slice path = silt_query(c->request, SILT_LIT("path"));
    *q = (struct silt_port_request){.path = SILT_LIT("/"), .interval_ms = INTERVAL_MS};
    if (!silt_query_number(c, "port", UINT16_MAX, &port)
        || !silt_query_number(c, "statusMin", 999, &min)
        || !silt_query_number(c, "statusMax", 999, &max))
        return false;
    bool good = path.len == 0 || silt_query_decode(c->request, path, &q->path);
    if (port == 0 || !good || q->path.len > SILT_WORKER_PATH_MAX) {
        silt_api_refuse_field(c->request, port == 0 ? "port" : "path",
                              port == 0 ? "is required"
                                        : "is badly escaped, or longer than 4096 bytes");
        return false;
    }
    q->port = (uint16_t)port;
    q->http = !silt_slice_eq(silt_query(c->request, SILT_LIT("mode")), SILT_LIT("tcp"));
    q->status_min = (uint32_t)min;
    q->status_max = (uint32_t)max;
    return true;
}

static void wait_for_port(struct silt_call *c, struct silt_process *p, uint64_t timeout_ms)
{
    struct silt_port_request q;
    struct silt_error e;
    if (!read_port(c, &q))
        return;
    struct wait *w = new_wait(c, p, timeout_ms);
    w->port.reached = on_reached;
    w->port.exited = on_exited;
    w->port.failed = on_port_failed;
    q.process = p;
    c->request->on_halved = on_halved;
    if (silt_process_is_over(p))
        answer(w, "exited", NULL);
    else if (silt_port_wait_start(&w->port, p->sandbox, &q, &e) < 0)
        on_port_failed(&w->port, &e);
}

static void wait_for(struct silt_call *c)
{
    struct silt_process *p = c->process;
    uint64_t timeout_ms = TIMEOUT_MS;
    silt_slice what = silt_query(c->request, SILT_LIT("for"));
    if (!silt_query_number(c, "timeoutMs", TIMEOUT_MAX_MS, &timeout_ms))
        return;
    if (what.data == NULL || silt_slice_eq(what, SILT_LIT("exit")))
        wait_for_exit(c, p, timeout_ms);
    else if (silt_slice_eq(what, SILT_LIT("line")))
        wait_for_line(c, p, timeout_ms);
    else if (silt_slice_eq(what, SILT_LIT("port")))
        wait_for_port(c, p, timeout_ms);
    else
        silt_api_refuse_field(c->request, "for", "must be exit, line or port");
}

static const struct silt_call_kind wait_call = {
    .sandbox = SILT_CALL_LOOKS, .native = true, .choose = silt_process_choose, .run = wait_for};

SILT_HANDLER(silt_api_v1_process_wait)
{
    silt_process_call(r, args, &wait_call);
}
