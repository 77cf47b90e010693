/* SPDX-License-Identifier: Apache-2.0 */
/* GET …/rpc: the connection: sending, receiving, and its tables. A client that breaks the protocol
 * gets an abort message and is disconnected; its commands keep running in the sandbox. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MESSAGE_MAX = 64 << 20,
    ENTRIES_MAX = 4096,       /* per connection: calls not yet released, and streams */
    HELD_MAX = 96 << 20,      /* buffered bytes, per connection */
    ALL_HELD_MAX = 256 << 20, /* of all connections */
};

static size_t all_held; /* by connections beyond SILT_HTTP_MARK, which each may hold */

/* ---- buffered bytes ---- */

static void note(struct silt_rpc *l)
{
    size_t bytes = l->is_over ? 0 : l->held + silt_socket_pending(&l->guest.socket);
    size_t counts = bytes > SILT_HTTP_MARK ? bytes : 0;
    all_held +=
        counts
        - l->noted; /* the difference may be negative: unsigned wrap-around gives the right sum */
    l->noted = counts;
}

void silt_rpc_hold(struct silt_rpc *l, ptrdiff_t bytes)
{
    l->held += (size_t)bytes;
}

bool silt_rpc_has_room(struct silt_rpc *l, size_t has, size_t more)
{
    note(l);
    return (has + more <= SILT_RPC_SMALL
            && l->held + silt_socket_pending(&l->guest.socket) <= HELD_MAX)
           || (more <= HELD_MAX
               && l->held + silt_socket_pending(&l->guest.socket) + more <= HELD_MAX
               && all_held + more <= ALL_HELD_MAX);
}

/* ---- sending ---- */

void silt_rpc_say(struct silt_rpc *l, const struct silt_buf *frame)
{
    if (frame->broken)
        silt_rpc_abort(l, "a message is too large");
    else if (!l->is_over)
        silt_ws_client_say(&l->guest, frame);
}

void silt_rpc_say_value(struct silt_rpc *l, const char *kind, int64_t id, silt_slice value)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_RPC_FRAME_ROOM + value.len);
    silt_buf_addf(&b, "[\"%s\",%lld,", kind, (long long)id);
    silt_buf_add(&b, value);
    silt_buf_add_byte(&b, ']');
    silt_rpc_say(l, &b);
}

void silt_rpc_say_release(struct silt_rpc *l, int64_t id)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_RPC_FRAME_ROOM);
    silt_buf_addf(&b, "[\"release\",%lld,1]", (long long)id);
    silt_rpc_say(l, &b);
}

void silt_rpc_let_go(struct silt_rpc *l, const struct silt_rpc_refs *refs)
{
    for (size_t i = 0; i < refs->count; i++)
        silt_rpc_say_release(l, refs->exports[i]);
}

/* ---- tables ---- */

static silt_slice key_of(const int64_t *id)
{
    return (silt_slice){(const char *)id, sizeof(*id)};
}

void silt_rpc_enter(struct silt_rpc *l, struct silt_rpc_entry *e)
{
    silt_map_put(&l->exports, key_of(&e->id), e);
}

void silt_rpc_forget(struct silt_rpc *l, struct silt_rpc_entry *e)
{
    (void)silt_map_remove(&l->exports, key_of(&e->id));
}

void *silt_rpc_find(struct silt_rpc *l, int64_t id)
{
    return silt_map_find(&l->exports, key_of(&id));
}

static struct silt_rpc_call *call_of(struct silt_rpc_entry *e)
{
    return silt_outer(e, struct silt_rpc_call, entry);
}

void silt_rpc_wait_for(struct silt_rpc_call *c, enum silt_rpc_wait_for what, size_t bytes)
{
    struct silt_rpc *l = c->line;
    struct silt_rpc_wait *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    *w = (struct silt_rpc_wait){.id = ++l->asked, .call = c, .what = what, .bytes = bytes};
    silt_list_append(&c->waits, &w->link);
    silt_map_put(&l->waits, key_of(&w->id), w);
}

void silt_rpc_wait_drop(struct silt_rpc_wait *w)
{
    (void)silt_map_remove(&w->call->line->waits, key_of(&w->id));
    silt_list_remove(&w->link);
    free(w);
}

/* ---- closing ---- */

static void free_line(struct silt_grave *g)
{
    struct silt_rpc *l = silt_outer(g, struct silt_rpc, grave);
    silt_map_fini(&l->exports);
    silt_map_fini(&l->waits);
    free(l);
}

static void free_feeds(struct silt_rpc *l)
{
    struct silt_rpc_entry *e;
    for (size_t at = 0; (e = silt_map_next(&l->exports, &at)) != NULL; at = 0)
        silt_rpc_upload_free(silt_rpc_upload_of(e));
}

/* Commands keep running, without a reader. */
static void hang_up(struct silt_rpc *l)
{
    struct silt_rpc_call *c;
    if (l->is_over)
        return;
    l->is_over = true;
    silt_rpc_acks_drop(l);
    silt_rpc_long_leave(l);
    while ((c = silt_list_first(&l->calls, struct silt_rpc_call, link))
           != NULL) /* hanging up one call may finish others */
        silt_rpc_call_hang_up(c);
    free_feeds(l);
    note(l);
    silt_list_remove(&l->guest.link);
    silt_loop_bury(l->api->loop, &l->grave);
}

static void on_closed(struct silt_socket *s)
{
    hang_up(silt_outer(s, struct silt_rpc, guest.socket));
}

static void on_parting(struct silt_ws_client *g)
{
    hang_up(silt_outer(g, struct silt_rpc, guest));
}

void silt_rpc_abort(struct silt_rpc *l, const char *format, ...)
{
    char text[128];
    silt_auto_buf b = {0};
    va_list args;
    if (l->is_over)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    silt_buf_init(&b, 1024);
    silt_buf_add(&b, SILT_LIT("[\"abort\","));
    silt_rpc_fault(&b, "Error", silt_slice_of(text));
    silt_buf_add_byte(&b, ']');
    silt_ws_client_say(&l->guest, &b);
    hang_up(l);
    silt_ws_client_leave(&l->guest, SILT_RPC_CLOSE_CODE, silt_slice_of(text));
}

/* ---- receiving ---- */

static void refuse_stream(struct silt_rpc *l, int64_t id)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1024);
    silt_rpc_fault(&b, "TypeError", SILT_LIT("Only a pipe takes stream messages."));
    silt_rpc_say_value(l, "reject", id, silt_buf_slice(&b));
}

static void take_stream(struct silt_rpc *l, const struct silt_json *value)
{
    int64_t id = ++l->arrived;
    struct silt_rpc_invocation v;
    if (!silt_rpc_is_invocation(value, &v)) {
        silt_rpc_abort(l, "bad RPC message: stream");
        return;
    }
    struct silt_rpc_entry *e = silt_rpc_find(l, v.target);
    if (e != NULL && e->thing == SILT_RPC_UPLOAD)
        silt_rpc_upload_take(silt_rpc_upload_of(e), id, &v);
    else if (e != NULL || v.target == 0)
        refuse_stream(l, id);
    else
        silt_rpc_abort(l, "no such entry on exports table: %lld", (long long)v.target);
}

static void take_pull(struct silt_rpc *l, int64_t id)
{
    struct silt_rpc_entry *e = silt_rpc_find(l, id);
    if (e == NULL)
        silt_rpc_abort(l, "no such export ID: %lld", (long long)id);
    else if (e->thing == SILT_RPC_CALL)
        silt_rpc_call_pull(call_of(e));
    else
        silt_rpc_abort(l, "bad RPC message: a pipe cannot be pulled");
}

/* There is one reference to each id; unknown ids were already released by us. */
static void take_release(struct silt_rpc *l, int64_t id, int64_t count)
{
    struct silt_rpc_entry *e = silt_rpc_find(l, id);
    if (e == NULL || count == 0)
        return;
    if (e->thing == SILT_RPC_CALL)
        silt_rpc_call_release(call_of(e));
    else
        silt_rpc_upload_release(silt_rpc_upload_of(e));
}

static void take_answer(struct silt_rpc *l, const struct silt_rpc_message *m)
{
    struct silt_rpc_wait *w = silt_map_find(&l->waits, key_of(&m->id));
    struct silt_rpc_refs refs;
    bool good = m->kind == SILT_RPC_RESOLVE;
    if (!silt_rpc_refs(m->value, &refs)) {
        silt_rpc_abort(l, "unknown special value");
        return;
    }
    silt_rpc_let_go(l, &refs);
    if (w == NULL)
        return;
    if (w->what == SILT_RPC_CALLBACK)
        silt_rpc_code_on_answer(w, good, refs.count + refs.pipe_count == 0 ? m->value : NULL);
    else
        silt_rpc_download_on_ack(w, good);
}

static void take(struct silt_rpc *l, const struct silt_rpc_message *m)
{
    switch (m->kind) {
    case SILT_RPC_PUSH:
        silt_rpc_call_push(l, m->value);
        break;
    case SILT_RPC_STREAM:
        take_stream(l, m->value);
        break;
    case SILT_RPC_DOWNLOAD:
        silt_rpc_upload_new(l, ++l->arrived);
        break;
    case SILT_RPC_PULL:
        take_pull(l, m->id);
        break;
    case SILT_RPC_RELEASE:
        take_release(l, m->id, m->count);
        break;
    case SILT_RPC_RESOLVE:
    case SILT_RPC_REJECT:
        take_answer(l, m);
        break;
    case SILT_RPC_ABORT:
        hang_up(l);
        silt_ws_client_leave(&l->guest, SILT_RPC_CLOSE_CODE, SILT_LIT("aborted by the client"));
        break;
    }
}

void silt_rpc_heard(struct silt_rpc *l, const struct silt_rpc_message *m,
                    const struct silt_error *e)
{
    if (m == NULL) {
        silt_rpc_abort(l, "%s", e->text);
        return;
    }
    take(l, m);
    if (l->exports.used > ENTRIES_MAX)
        silt_rpc_abort(l, "more than %d entries on the exports table", ENTRIES_MAX);
    note(l);
}

void silt_rpc_hear(struct silt_rpc *l, silt_slice bytes)
{
    struct silt_rpc_message m;
    struct silt_error e;
    silt_auto_arena arena;
    silt_arena_init(&arena, SILT_RPC_ARENA_MAX);
    bool good = silt_rpc_read(&arena, bytes, &m, &e);
    silt_rpc_heard(l, good ? &m : NULL, &e);
}

static void on_message(struct silt_socket *s, bool text, silt_slice bytes)
{
    struct silt_rpc *l = silt_outer(s, struct silt_rpc, guest.socket);
    (void)text; /* JSON in a binary message is fine, too */
    if (l->reading != NULL)
        silt_rpc_long_later(l, bytes);
    else if (bytes.len > SILT_RPC_LONG && silt_rpc_has_room(l, 0, bytes.len))
        silt_rpc_long_start(l, bytes);
    else
        silt_rpc_hear(l, bytes);
}

/* ---- the socket ---- */

/* Moves the call to the end of the queue, so that a call with endless output does not starve
 * others. */
static struct silt_rpc_call *put_last(struct silt_rpc *l)
{
    return silt_outer(silt_list_rotate(&l->calls), struct silt_rpc_call, link);
}

static void on_drain(struct silt_socket *s)
{
    struct silt_rpc *l = silt_outer(s, struct silt_rpc, guest.socket);
    size_t left = 0;
    silt_list_each(it, &l->calls) left++;
    for (; left > 0 && !silt_list_empty(&l->calls) && silt_socket_pending(s) < SILT_HTTP_MARK;
         left--)
        silt_rpc_call_drain(put_last(l));
    if (left == 0 && !silt_list_empty(&l->calls))
        (void)put_last(l); /* every call had its turn: start with another one next time */
    note(l);
}

SILT_HANDLER(silt_api_rpc)
{
    struct silt_api *api = silt_api_of(r);
    if (!silt_ws_client_may_enter(r, args[0]))
        return;
    struct silt_rpc *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    l->api = api;
    l->grave.free = free_line;
    l->guest.on_parting = on_parting;
    l->guest.socket = (struct silt_socket){
        .on_message = on_message, .on_drain = on_drain, .on_closed = on_closed};
    silt_list_init(&l->calls);
    silt_rpc_acks_init(l);
    silt_map_init(&l->exports);
    silt_map_init(&l->waits);
    memcpy(l->id, args[0].data, args[0].len);
    silt_ws_client_enter(&l->guest, api, r, MESSAGE_MAX);
}
