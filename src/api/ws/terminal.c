/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/ws/pty and /v1/…/terminal: a viewer of a session's terminal. Binary messages carry input
 * and output, text messages are JSON: ready, resize, exit, error. Earlier output comes first, in
 * one message; nothing is lost or repeated between it and live output. */
#include "api/ws/client.h"
#include "sandbox/process/log_follower.h"
#include "sandbox/process/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_MAX = 1 << 20,
    COLUMNS = 80,
    ROWS = 24,
};

/* COMING (sandbox, shell) --log is open--> CATCHING_UP --earlier output sent--> LIVE
 *   any --end, leave--> GONE */
enum state { COMING, CATCHING_UP, LIVE, GONE };

struct viewer {
    struct silt_ws_client guest;
    struct silt_api *api; /* borrowed */
    enum state state;
    struct silt_waiter waiter;
    struct silt_process_watch watch;
    struct silt_process *process; /* borrowed: watched or followed */
    struct silt_keyboard keyboard;
    struct silt_log_follower_sink sink;
    struct silt_log_follower *follow; /* NULL: none, or finished */
    struct silt_buf replay;
    uint64_t until; /* CATCHING_UP: size of the log when the viewer connected */
    struct silt_grave grave;
    uint16_t columns, rows;
    char session[SILT_SESSION_NAME_MAX + 1];
    char shell[SILT_TERMINAL_SHELL_MAX + 1];
};

static void free_viewer(struct silt_grave *g)
{
    struct viewer *v = silt_outer(g, struct viewer, grave);
    silt_buf_fini(&v->replay);
    free(v);
}

static void let_go(struct viewer *v)
{
    if (v->state == GONE)
        return;
    v->state = GONE;
    silt_waiter_leave(&v->waiter);
    silt_process_unwatch(&v->watch);
    if (v->follow != NULL)
        silt_log_follower_stop(v->follow);
    silt_keyboard_leave(&v->keyboard);
    silt_list_remove(&v->guest.link);
    silt_loop_bury(v->api->loop, &v->grave);
}

static void part(struct viewer *v, int code, silt_slice reason)
{
    silt_ws_client_leave(&v->guest, code, reason);
    let_go(v);
}

/* ---- messages to the viewer ---- */

static void open_text(struct silt_buf *b, const char *type)
{
    silt_buf_init(b, 16384);
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("type"));
    silt_json_string(b, silt_slice_of(type));
}

static void say_error(struct viewer *v, const char *message)
{
    silt_auto_buf b = {0};
    open_text(&b, "error");
    silt_json_key(&b, SILT_LIT("message"));
    silt_json_string(&b, silt_slice_of(message));
    silt_json_close(&b, '}');
    silt_ws_client_say(&v->guest, &b);
}

static void fail(struct viewer *v, const char *message)
{
    say_error(v, message);
    part(v, SILT_WS_FAILED, silt_slice_of(message));
}

static void say_exit(struct viewer *v, int code, int signal)
{
    const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
    char text[32];
    silt_auto_buf b = {0};
    open_text(&b, "exit");
    silt_json_key(&b, SILT_LIT("code"));
    silt_json_i64(&b, code);
    if (name != NULL) {
        (void)snprintf(text, sizeof(text), "SIG%s", name);
        silt_json_key(&b, SILT_LIT("signal"));
        silt_json_string(&b, silt_slice_of(text));
    }
    silt_json_close(&b, '}');
    silt_ws_client_say(&v->guest, &b);
}

static void be_ready(struct viewer *v)
{
    silt_slice all = silt_buf_slice(&v->replay);
    silt_auto_buf b = {0};
    if (all.len > SILT_TERMINAL_REPLAY)
        all = (silt_slice){all.data + all.len - SILT_TERMINAL_REPLAY, SILT_TERMINAL_REPLAY};
    if (all.len > 0)
        silt_socket_send(&v->guest.socket, SILT_WS_BINARY, all);
    silt_buf_fini(&v->replay);
    v->state = LIVE;
    open_text(&b, "ready");
    silt_json_close(&b, '}');
    silt_ws_client_say(&v->guest, &b);
}

/* ---- its log ---- */

static struct viewer *viewer_of(struct silt_log_follower_sink *sink)
{
    return silt_outer(sink, struct viewer, sink);
}

static void on_opened(struct silt_log_follower_sink *sink, const struct silt_log_head *head)
{
    struct viewer *v = viewer_of(sink);
    v->until = head->head;
    if (head->head == head->tail)
        be_ready(v);
}

static void catch_up(struct viewer *v, uint64_t cursor)
{
    if (v->replay.len > 4 * SILT_TERMINAL_REPLAY)
        silt_buf_drop(&v->replay, v->replay.len - SILT_TERMINAL_REPLAY);
    if (cursor >= v->until)
        be_ready(v);
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct viewer *v = viewer_of(sink);
    if (v->state == LIVE) {
        silt_socket_send(&v->guest.socket, SILT_WS_BINARY, piece->bytes);
        return;
    }
    silt_buf_add(&v->replay, piece->bytes);
    catch_up(v, piece->after);
}

/* The terminal does not wait for a viewer that is a whole log behind. The rest would not make a
 * correct screen: the viewer may reconnect and gets the end of the log. */
static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    struct viewer *v = viewer_of(sink);
    char text[SILT_WS_REASON_MAX + 1];
    if (v->state == CATCHING_UP) {
        catch_up(v, cursor);
        return;
    }
    if (why == SILT_GAP_UNSTORED) {
        say_error(v, "Some output is missing: the sandbox has no room for its log");
        return;
    }
    (void)snprintf(
        text, sizeof(text),
        "This viewer is too slow: %llu bytes were not shown. Connect again to see the last of it",
        (unsigned long long)bytes);
    say_error(v, text);
    part(v, SILT_WS_LATER, silt_slice_of(text));
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    struct viewer *v = viewer_of(sink);
    return v->state == LIVE && silt_socket_pending(&v->guest.socket) >= SILT_HTTP_MARK;
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct viewer *v = viewer_of(sink);
    const struct silt_process *p = v->process;
    int code = p->row.exit_code,
        signal = p->row.signal; /* not p->end: that is the agent's report */
    (void)cursor;
    v->follow = NULL;
    if (v->state == CATCHING_UP)
        be_ready(v);
    if (code < 0 && signal == 0) {
        fail(v, "The sandbox ended");
    } else if (signal == SILT_TERMINAL_NO_SHELL) {
        fail(v, "The shell could not be started");
    } else {
        say_exit(v, code >= 0 ? code : 128 + signal, signal);
        part(v, SILT_WS_NORMAL, SILT_LIT("exit"));
    }
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct viewer *v = viewer_of(sink);
    v->follow = NULL;
    fail(v, e->text);
}

static void follow(struct viewer *v)
{
    struct silt_log_follower_options o = {.from_tail = true};
    v->sink = (struct silt_log_follower_sink){.opened = on_opened,
                                              .output = on_output,
                                              .gap = on_gap,
                                              .full = is_full,
                                              .over = on_over,
                                              .failed = on_failed};
    v->state = CATCHING_UP;
    v->follow = silt_log_follower_start(v->process, &o, &v->sink);
}

/* ---- its shell ---- */

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct viewer *v = silt_outer(w, struct viewer, watch);
    char text[SILT_SESSION_NAME_MAX + 64];
    (void)p;
    switch (what) {
    case SILT_PROCESS_STARTED:
    case SILT_PROCESS_ENDED:
        follow(v);
        break;
    case SILT_PROCESS_NOT_STARTED:
        fail(v, e->text);
        break;
    case SILT_PROCESS_NO_SHELL:
        (void)snprintf(text, sizeof(text), "Session '%s' shell exited", v->session);
        fail(v, text);
        break;
    }
}

static int start(struct viewer *v, struct silt_sandbox *s, struct silt_error *e)
{
    struct silt_session *session = silt_session_find(s, silt_slice_of(v->session));
    struct silt_session_options none = {0};
    struct silt_terminal_options o = {
        .columns = v->columns, .rows = v->rows, .shell = silt_slice_of(v->shell)};
    if (session == NULL && silt_session_new(s, silt_slice_of(v->session), &none, &session, e) < 0)
        return -1;
    return silt_terminal_start(s, session, &o, &v->watch, &v->process, e);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *why)
{
    struct viewer *v = silt_outer(w, struct viewer, waiter);
    struct silt_error e;
    if (s == NULL) {
        fail(v, why->text);
        return;
    }
    v->process = silt_terminal_find(s, silt_slice_of(v->session));
    bool is_new = v->process == NULL;
    if (is_new && start(v, s, &e) < 0) {
        fail(v, e.text);
        return;
    }
    if (v->state == GONE)
        return; /* it could not be started, and the viewer was informed */
    silt_keyboard_join(&v->keyboard, v->process);
    silt_socket_hold(&v->guest.socket, false);
    if (v->process->row.status == SILT_PROCESS_RUNNING && v->state == COMING)
        follow(v);
    else if (!is_new && v->state == COMING)
        silt_process_watch(v->process, &v->watch);
}

/* ---- messages from the viewer ---- */

static bool read_size(const struct silt_json *m, const char *name, uint16_t *ret)
{
    const struct silt_json *n = silt_json_get(m, silt_slice_of(name));
    if (n == NULL || n->type != SILT_JSON_INT || n->integer < 1 || n->integer > UINT16_MAX)
        return false;
    *ret = (uint16_t)n->integer;
    return true;
}

static void on_control(struct viewer *v, silt_slice text)
{
    const struct silt_json *m, *type;
    struct silt_error e;
    uint16_t columns, rows;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    if (silt_json_read(&arena, text, &m, &e) < 0) {
        say_error(v, "Invalid control message");
        return;
    }
    type = silt_json_get(m, SILT_LIT("type"));
    if (type == NULL || type->type != SILT_JSON_STRING
        || !silt_slice_eq(type->string, SILT_LIT("resize")))
        return;
    if (read_size(m, "cols", &columns) && read_size(m, "rows", &rows))
        silt_keyboard_resize(&v->keyboard, columns, rows);
    else
        say_error(v, "cols and rows must be whole numbers from 1 to 65535");
}

static void on_message(struct silt_socket *s, bool text, silt_slice bytes)
{
    struct viewer *v = silt_outer(s, struct viewer, guest.socket);
    if (text)
        on_control(v, bytes);
    else if (!silt_keyboard_type(&v->keyboard, bytes))
        silt_socket_hold(s, true);
}

static void on_room(struct silt_keyboard *k)
{
    silt_socket_hold(&silt_outer(k, struct viewer, keyboard)->guest.socket, false);
}

static void on_drain(struct silt_socket *s)
{
    struct viewer *v = silt_outer(s, struct viewer, guest.socket);
    if (v->follow != NULL)
        silt_log_follower_resume(v->follow);
}

static void on_closed(struct silt_socket *s)
{
    let_go(silt_outer(s, struct viewer, guest.socket));
}

static void on_parting(struct silt_ws_client *g)
{
    let_go(silt_outer(g, struct viewer, guest));
}

/* ---- the request ---- */

static uint16_t query_size(const struct silt_http_request *r, silt_slice name, uint16_t otherwise)
{
    struct silt_error e;
    uint64_t n;
    return silt_slice_to_u64(silt_query(r, name), 1, UINT16_MAX, &n, &e) < 0 ? otherwise
                                                                             : (uint16_t)n;
}

/* False if absent or invalid. */
static bool query_text(struct silt_http_request *r, silt_slice name, char *out, size_t size)
{
    struct silt_error e;
    silt_slice raw = silt_query(r, name), text;
    return raw.len > 0 && silt_query_decode(r, raw, &text) && text.len > 0
           && silt_slice_to_cstr(text, out, size, &e) == 0;
}

static const char *read_query(struct silt_http_request *r, struct viewer *v)
{
    v->columns = query_size(r, SILT_LIT("cols"), COLUMNS);
    v->rows = query_size(r, SILT_LIT("rows"), ROWS);
    if (silt_query(r, SILT_LIT("sessionId")).len == 0)
        return "sessionId query parameter required";
    if (!query_text(r, SILT_LIT("sessionId"), v->session, sizeof(v->session))
        || silt_is_blank(silt_slice_of(v->session)))
        return "sessionId cannot be blank, longer than 256 bytes, or badly escaped";
    if (silt_query(r, SILT_LIT("shell")).len == 0)
        (void)snprintf(v->shell, sizeof(v->shell), "bash");
    else if (!query_text(r, SILT_LIT("shell"), v->shell, sizeof(v->shell)))
        return "shell is too long or badly escaped";
    return NULL;
}

static void enter(struct silt_http_request *r, struct silt_api *api, silt_slice id,
                  struct viewer *v)
{
    v->api = api;
    v->grave.free = free_viewer;
    v->waiter.on_ready = on_ready;
    v->watch.on_event = on_event;
    v->keyboard.on_room = on_room;
    v->guest.on_parting = on_parting;
    v->guest.socket = (struct silt_socket){
        .on_message = on_message, .on_drain = on_drain, .on_closed = on_closed};
    silt_list_init(&v->waiter.link);
    silt_list_init(&v->watch.link);
    silt_list_init(&v->keyboard.link);
    silt_buf_init(&v->replay, SIZE_MAX / 2);
    silt_ws_client_enter(&v->guest, api, r, MESSAGE_MAX);
    silt_socket_hold(&v->guest.socket, true);
    silt_registry_use(api->registry, id, &v->waiter);
}

SILT_HANDLER(silt_api_pty)
{
    struct silt_api *api = silt_api_of(r);
    if (!silt_ws_client_may_enter(r, args[0]))
        return;
    struct viewer *v = calloc(1, sizeof(*v));
    if (v == NULL)
        abort();
    const char *wrong = read_query(r, v);
    if (wrong == NULL) {
        enter(r, api, args[0], v);
        return;
    }
    free(v);
    if (silt_api_is_native(r))
        silt_api_refuse(r, SILT_API_VALIDATION_FAILED, (silt_slice){NULL, 0}, "%s", wrong);
    else
        silt_http_reply(r, 400, SILT_LIT("text/plain"), (silt_slice){NULL, 0},
                        silt_slice_of(wrong));
}

SILT_HANDLER(silt_api_v1_terminal)
{
    bool create = false;
    if (!silt_query_flag(r, "create", &create) || !silt_ws_client_may_enter(r, args[0]))
        return;
    if (create || silt_registry_find(silt_api_of(r)->registry, args[0]) != NULL)
        silt_api_pty(r, args);
    else
        silt_api_refuse(r, SILT_API_SANDBOX_NOT_FOUND, (silt_slice){NULL, 0},
                        "Sandbox '%.*s' does not exist", (int)args[0].len, args[0].data);
}
