/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/ws: many requests on one WebSocket. Each message is routed like the HTTP request with the
 * same method and path; the handler's response becomes one frame, or one frame per event of a
 * stream. */
#include "api/ws/client.h"
#include "api/ws/frame.h"
#include "http/internal_request.h"

#include <stdlib.h>

enum {
    MESSAGE_MAX = 64 << 20, /* an archive of 40 MiB in base64, as the npm client restores one */
    REQUESTS_MAX = 256,     /* at once, per socket */
    HELD_MAX = 64 << 20,    /* bytes of responses that are incomplete or not yet read by the client,
                               per socket */
    ALL_HELD_MAX = 256 << 20, /* of all sockets */
    SMALL = 64 << 10,         /* responses up to this size may exceed the limit of all sockets */
};

static size_t all_held; /* by sockets beyond SILT_HTTP_MARK, which each connection may hold */
static const char too_large[] = "The answer is larger than a socket holds now; ask for it by HTTP";

struct line { /* one socket */
    struct silt_ws_client guest;
    struct silt_api *api; /* borrowed */
    struct silt_link asked;
    size_t count;
    size_t held;  /* bytes of incomplete responses */
    size_t noted; /* this socket's share of all_held: `held` and bytes the client has not read */
    struct silt_grave grave;
    char id[SILT_ID_MAX + 1]; /* of its sandbox */
};

/* OPEN --cancel, or too large an event--> LEAVING (once its handler is off the stack) */
enum fate { OPEN, CANCELLED, FAILED };

struct asked {
    struct silt_http_internal_sink sink;
    struct silt_link link;
    struct line *line;                /* borrowed */
    struct silt_http_internal *inner; /* owned until it is answered */
    struct silt_timer leave;
    struct silt_grave grave;
    enum fate fate;
    bool streams; /* the response is a stream of events */
    bool is_json;
    int status;
    struct silt_buf text; /* a response in pieces, or the rest of an event */
    char id[SILT_WS_ID_MAX + 1];
};

static void free_asked(struct silt_grave *g)
{
    struct asked *a = silt_outer(g, struct asked, grave);
    silt_buf_fini(&a->text);
    free(a);
}

static size_t holds(const struct line *l)
{
    return l->held + silt_socket_pending(&l->guest.socket);
}

static void note(struct line *l, size_t bytes)
{
    size_t counts = bytes > SILT_HTTP_MARK ? bytes : 0;
    all_held +=
        counts
        - l->noted; /* the difference may be negative: unsigned wrap-around gives the right sum */
    l->noted = counts;
}

static bool has_room(struct asked *a, size_t more)
{
    struct line *l = a->line;
    note(l, holds(l));
    return (a->text.len + more <= SMALL && holds(l) <= HELD_MAX)
           || (more <= HELD_MAX && holds(l) + more <= HELD_MAX && all_held + more <= ALL_HELD_MAX);
}

static void forget(struct asked *a)
{
    struct line *l = a->line;
    struct silt_loop *loop = l->api->loop;
    l->held -= a->text.len;
    l->count--;
    note(l, holds(l));
    silt_list_remove(&a->link);
    silt_loop_cancel(loop, &a->leave);
    silt_loop_bury(loop, &a->grave);
}

static void say_response(struct asked *a, int status, silt_slice json)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_WS_FRAME_ROOM + json.len);
    silt_ws_frame_response(&b, silt_slice_of(a->id), status, json);
    silt_ws_client_say(&a->line->guest, &b);
}

static void say_error(struct line *l, const char *id, const char *code, int status,
                      const char *message)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_WS_FRAME_ROOM);
    silt_ws_frame_error(&b, id, code, status, message);
    silt_ws_client_say(&l->guest, &b);
}

/* ---- responses ---- */

static struct asked *asked_of(struct silt_http_internal_sink *s)
{
    return silt_outer(s, struct asked, sink);
}

static silt_slice json_of(bool is_json, silt_slice body)
{
    return is_json ? body : (silt_slice){NULL, 0};
}

static void on_reply(struct silt_http_internal_sink *s, int status, silt_slice type,
                     silt_slice body)
{
    struct asked *a = asked_of(s);
    silt_slice json = json_of(silt_slice_starts(type, SILT_LIT("application/json")), body);
    if (has_room(a, json.len))
        say_response(a, status, json);
    else
        say_error(a->line, a->id, "INTERNAL_ERROR", 500, too_large);
    forget(a);
}

static void on_begin(struct silt_http_internal_sink *s, int status, silt_slice type)
{
    struct asked *a = asked_of(s);
    a->status = status;
    a->streams = silt_slice_starts(type, SILT_LIT("text/event-stream"));
    a->is_json = silt_slice_starts(type, SILT_LIT("application/json"));
    if (a->streams && a->fate == CANCELLED)
        silt_loop_after(a->line->api->loop, &a->leave, 0);
}

/* Sends complete events. */
static void pass_events(struct asked *a)
{
    silt_slice rest = silt_buf_slice(&a->text), event;
    while (a->fate == OPEN && silt_ws_next_event(&rest, &event)) {
        silt_auto_buf b;
        silt_buf_init(&b, SILT_WS_FRAME_ROOM + 6 * event.len);
        if (silt_ws_frame_stream(&b, silt_slice_of(a->id), event))
            silt_ws_client_say(&a->line->guest, &b);
    }
    size_t used = a->text.len - rest.len;
    a->line->held -= used;
    silt_buf_drop(&a->text, used);
    if (a->text.len == 0)
        silt_buf_fini(&a->text);
}

static void on_write(struct silt_http_internal_sink *s, silt_slice bytes)
{
    struct asked *a = asked_of(s);
    struct line *l = a->line;
    if (a->fate == FAILED)
        return;
    if (!has_room(a, bytes.len)) {
        a->fate = FAILED;
        if (a->streams)
            silt_loop_after(l->api->loop, &a->leave, 0);
        return;
    }
    l->held += bytes.len;
    silt_buf_add(&a->text, bytes);
    if (a->streams)
        pass_events(a);
}

static size_t pending(const struct silt_http_internal_sink *s)
{
    const struct asked *a = (const struct asked *)(const void *)s;
    _Static_assert(offsetof(struct asked, sink) == 0, "a cast leads from one to the other");
    return a->streams ? silt_socket_pending(&a->line->guest.socket) : 0;
}

static void say_end(struct asked *a, bool whole)
{
    if (a->streams && (!whole || a->fate == FAILED))
        say_error(a->line, a->id, "STREAM_ERROR", 500, whole ? too_large : "The stream broke off");
    else if (!whole || a->fate == FAILED)
        say_error(a->line, a->id, "INTERNAL_ERROR", 500,
                  whole ? too_large : "The answer broke off");
    else
        say_response(a, a->status, json_of(a->is_json && !a->streams, silt_buf_slice(&a->text)));
}

static void on_end(struct silt_http_internal_sink *s, bool whole)
{
    struct asked *a = asked_of(s);
    say_end(a, whole);
    forget(a);
}

/* Stops a stream: its handler sees a client that has gone. */
static void leave(struct asked *a)
{
    silt_http_internal_leave(a->inner);
    say_end(a, true);
    forget(a);
}

static void on_leave(struct silt_timer *t)
{
    leave(silt_outer(t, struct asked, leave));
}

/* ---- requests ---- */

static struct asked *find(struct line *l, silt_slice id)
{
    silt_list_each(it, &l->asked)
    {
        struct asked *a = silt_outer(it, struct asked, link);
        if (silt_slice_eq(silt_slice_of(a->id), id))
            return a;
    }
    return NULL;
}

static struct asked *new_asked(struct line *l, silt_slice id)
{
    struct asked *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    a->line = l;
    a->sink = (struct silt_http_internal_sink){
        .reply = on_reply, .begin = on_begin, .write = on_write, .pending = pending, .end = on_end};
    a->leave.on_time = on_leave;
    a->grave.free = free_asked;
    silt_buf_init(&a->text, HELD_MAX);
    memcpy(a->id, id.data, id.len);
    silt_list_append(&l->asked, &a->link);
    l->count++;
    return a;
}

static void route(struct asked *a)
{
    struct silt_http_internal *inner = a->inner;
    struct silt_http_request *r = silt_http_internal_request(inner);
    struct silt_api *api = a->line->api;
    if (a->line->count > REQUESTS_MAX)
        silt_api_refuse(r, SILT_API_LIMIT_REACHED, (silt_slice){NULL, 0},
                        "%d requests of this socket are not answered yet", REQUESTS_MAX);
    else
        silt_api_route(api, r);
    silt_http_internal_deliver(inner);
}

static void take_request(struct line *l, const struct silt_ws_request *q)
{
    struct silt_error e;
    silt_auto_buf head, body;
    silt_buf_init(&head, SILT_HTTP_HEAD_MAX);
    silt_buf_init(&body, (size_t)6 * MESSAGE_MAX);
    if (find(l, q->id) != NULL) {
        say_error(l, NULL, "INVALID_REQUEST", 400,
                  "A request of this id is under way on this socket");
        return;
    }
    struct asked *a = new_asked(l, q->id);
    if (silt_ws_request_lay(q, l->id, &head, &body, &e) < 0
        || (a->inner = silt_http_internal_new(l->api->server, silt_buf_slice(&head),
                                              silt_buf_slice(&body), &a->sink, &e))
               == NULL) {
        forget(a); /* first: sending may close the socket, and with it all its requests */
        say_error(l, a->id, "INTERNAL_ERROR", 500, e.text);
        return;
    }
    route(a);
}

/* A request that is not a stream ends by itself; one that may become a stream is remembered. */
static void take_cancel(struct line *l, silt_slice id)
{
    struct asked *a = find(l, id);
    if (a == NULL || a->fate != OPEN)
        return;
    a->fate = CANCELLED;
    if (a->streams)
        leave(a);
}

static void on_message(struct silt_socket *s, bool text, silt_slice bytes)
{
    struct line *l = silt_outer(s, struct line, guest.socket);
    struct silt_ws_request q;
    silt_auto_arena arena;
    (void)text; /* JSON in a binary message is fine, too */
    silt_arena_init(&arena, (size_t)6 * MESSAGE_MAX);
    switch (silt_ws_request_read(&arena, bytes, &q)) {
    case SILT_WS_REQUEST:
        take_request(l, &q);
        break;
    case SILT_WS_CANCEL:
        take_cancel(l, q.id);
        break;
    case SILT_WS_NOT_JSON:
        say_error(l, NULL, "PARSE_ERROR", 400, "Invalid JSON message");
        break;
    case SILT_WS_INVALID:
        say_error(l, NULL, "INVALID_REQUEST", 400, "Message must be a valid request or cancel");
        break;
    }
}

/* ---- the socket ---- */

/* Moves the request to the end of the queue, so that one with endless output does not starve
 * others. */
static struct asked *put_last(struct line *l)
{
    return silt_outer(silt_list_rotate(&l->asked), struct asked, link);
}

static void on_drain(struct silt_socket *s)
{
    struct line *l = silt_outer(s, struct line, guest.socket);
    size_t left = l->count;
    for (; left > 0 && !silt_list_empty(&l->asked) && silt_socket_pending(s) < SILT_HTTP_MARK;
         left--)
        silt_http_internal_drain(put_last(l)->inner);
    if (left == 0 && !silt_list_empty(&l->asked))
        (void)put_last(l); /* every request had its turn: start with another one next time */
    note(l, holds(l));
}

static void free_line(struct silt_grave *g)
{
    free(silt_outer(g, struct line, grave));
}

/* Commands keep running, without a reader. */
static void hang_up(struct line *l)
{
    struct asked *a;
    while ((a = silt_list_first(&l->asked, struct asked, link))
           != NULL) { /* leaving one request may answer others */
        struct silt_http_internal *inner = a->inner;
        forget(a);
        silt_http_internal_leave(inner);
    }
    note(l, 0);
    silt_list_remove(&l->guest.link);
    silt_loop_bury(l->api->loop, &l->grave);
}

static void on_closed(struct silt_socket *s)
{
    hang_up(silt_outer(s, struct line, guest.socket));
}

static void on_parting(struct silt_ws_client *g)
{
    hang_up(silt_outer(g, struct line, guest));
}

SILT_HANDLER(silt_api_ws)
{
    struct silt_api *api = silt_api_of(r);
    if (!silt_ws_client_may_enter(r, args[0]))
        return;
    struct line *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    l->api = api;
    l->grave.free = free_line;
    l->guest.on_parting = on_parting;
    l->guest.socket = (struct silt_socket){
        .on_message = on_message, .on_drain = on_drain, .on_closed = on_closed};
    silt_list_init(&l->asked);
    memcpy(l->id, args[0].data, args[0].len);
    silt_ws_client_enter(&l->guest, api, r, MESSAGE_MAX);
}
