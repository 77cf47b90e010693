/* SPDX-License-Identifier: Apache-2.0 */
/* A stream from the client that is the body of a request. Each write is acknowledged when it has
 * been taken, which holds the client back. If a client ignores that, nothing more is read from
 * it. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"
#include "base/base64.h"

#include <stdlib.h>

enum {
    FEEDS_MAX = 64,       /* per connection */
    UNREAD_MAX = 1 << 20, /* bytes of a stream without a reader */
    FULL = 4 << 20,       /* bytes of all streams of a connection: nothing more is read from it */
    WRITES_MAX = 16384,   /* per stream */
};

/*   UNREAD --a call has it as its argument--> READ --close--> OVER
 *      \------------------ abort, release, its reader fails ----> BROKEN   */
enum state { UNREAD, READ, OVER, BROKEN };

struct write {
    struct silt_link link;
    int64_t id;
    bool end; /* a close, not a write */
    size_t len, at;
    char bytes[];
};

struct silt_rpc_upload {
    struct silt_rpc_entry entry;
    struct silt_rpc *line;        /* borrowed */
    struct silt_rpc_call *reader; /* borrowed; READ only */
    enum state state;
    struct silt_link writes;
    size_t count, bytes;
    bool is_flowing;
    struct silt_grave grave;
};

#define OVER_TEXT "[\"error\",\"Error\",\"The stream is over.\"]"
static const silt_slice undefined = {"[\"undefined\"]", 13};
static const silt_slice over = {OVER_TEXT, sizeof(OVER_TEXT) - 1};

struct silt_rpc_upload *silt_rpc_upload_of(struct silt_rpc_entry *e)
{
    return silt_outer(e, struct silt_rpc_upload, entry);
}

static void free_feed(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_rpc_upload, grave));
}

void silt_rpc_upload_new(struct silt_rpc *l, int64_t id)
{
    struct silt_rpc_upload *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    f->entry = (struct silt_rpc_entry){.id = id, .thing = SILT_RPC_UPLOAD};
    f->line = l;
    f->grave.free = free_feed;
    silt_list_init(&f->writes);
    silt_rpc_enter(l, &f->entry);
    if (++l->feeds > FEEDS_MAX)
        silt_rpc_abort(l, "more than %d pipes are open", FEEDS_MAX);
}

/* ---- queued writes ---- */

void silt_rpc_mind(struct silt_rpc *l)
{
    bool held = l->feed_bytes > FULL || l->reading != NULL;
    if (!l->is_over && held != l->guest.socket.held)
        silt_socket_hold(&l->guest.socket, held);
}

static void count(struct silt_rpc_upload *f, ptrdiff_t bytes)
{
    struct silt_rpc *l = f->line;
    f->bytes += (size_t)bytes;
    l->feed_bytes += (size_t)bytes;
    silt_rpc_hold(l, bytes);
    silt_rpc_mind(l);
}

/* An empty write takes memory, too. */
static size_t room_of(const struct write *w)
{
    return sizeof(*w) + w->len - w->at;
}

static void drop_write(struct silt_rpc_upload *f, struct write *w)
{
    count(f, -(ptrdiff_t)room_of(w));
    silt_list_remove(&w->link);
    f->count--;
    free(w);
}

static void drop_all(struct silt_rpc_upload *f, silt_slice reason)
{
    struct write *w;
    while ((w = silt_list_first(&f->writes, struct write, link)) != NULL) {
        silt_rpc_say_value(f->line, "reject", w->id, reason);
        drop_write(f, w);
    }
}

void silt_rpc_upload_fail(struct silt_rpc_upload *f, silt_slice reason)
{
    f->reader = NULL;
    if (f->state == OVER || f->state == BROKEN)
        return;
    f->state = BROKEN;
    drop_all(f, reason);
}

void silt_rpc_upload_free(struct silt_rpc_upload *f)
{
    struct silt_rpc *l = f->line;
    drop_all(f, over);
    silt_rpc_forget(l, &f->entry);
    l->feeds--;
    silt_loop_bury(l->api->loop, &f->grave);
}

/* ---- its reader ---- */

bool silt_rpc_upload_claim(struct silt_rpc_upload *f, struct silt_rpc_call *c)
{
    if (f->reader != NULL || f->state == READ)
        return false;
    if (f->state == UNREAD) {
        f->state = READ;
        f->reader = c;
        c->feed = f;
    }
    return f->state == READ;
}

/* Passes one piece of the first write, or the end. */
static void pass(struct silt_rpc_upload *f, struct silt_http_internal *inner)
{
    struct write *w = silt_list_first(&f->writes, struct write, link);
    size_t left = w->len - w->at, n = left < SILT_HTTP_FEED_MAX ? left : SILT_HTTP_FEED_MAX;
    silt_slice piece = {w->bytes + w->at, n};
    if (w->end) {
        f->state = OVER;
        f->reader->feed = NULL;
        f->reader = NULL;
        silt_rpc_ack(f->line, w->id);
        drop_write(f, w);
        silt_http_internal_feed(inner, (silt_slice){NULL, 0}, true);
        return;
    }
    silt_list_remove(&w->link); /* its bytes stay valid while they are passed */
    if (n > 0)
        silt_http_internal_feed(inner, piece, false);
    w->at += n;
    count(f, -(ptrdiff_t)n);
    if (w->at < w->len && f->state == READ) {
        w->link.next = f->writes.next;
        w->link.prev = &f->writes;
        f->writes.next->prev = &w->link;
        f->writes.next = &w->link;
        return;
    }
    if (f->state == READ)
        silt_rpc_ack(f->line, w->id);
    else
        silt_rpc_say_value(f->line, "reject", w->id, over);
    drop_write(f, w);
}

void silt_rpc_upload_flow(struct silt_rpc_upload *f)
{
    if (f->is_flowing)
        return;
    f->is_flowing = true;
    while (f->state == READ && f->reader->inner != NULL
           && silt_http_internal_wants(f->reader->inner) && !silt_list_empty(&f->writes))
        pass(f, f->reader->inner);
    f->is_flowing = false;
}

/* ---- the client's messages ---- */

static void break_reader(struct silt_rpc_upload *f, silt_slice reason)
{
    struct silt_rpc_call *c = f->reader;
    silt_rpc_upload_fail(f, reason);
    if (c == NULL)
        return;
    c->feed = NULL;
    silt_rpc_call_leave(c);
    silt_rpc_call_settle(c, false, reason);
}

static struct write *new_write(silt_slice base64)
{
    size_t size = silt_base64_size(base64), n = 0;
    struct write *w = calloc(1, sizeof(*w) + size + 3);
    if (w == NULL)
        abort();
    while (base64.len > 0 && n < size)
        n += silt_base64_decode(&base64, w->bytes + n, size + 3 - n);
    w->len = n;
    return w;
}

static void append(struct silt_rpc_upload *f, struct write *w, int64_t id)
{
    w->id = id;
    silt_list_append(&f->writes, &w->link);
    f->count++;
    count(f, (ptrdiff_t)room_of(w));
    if (f->count > WRITES_MAX) {
        silt_rpc_abort(f->line, "more than %d writes to a pipe are not acknowledged", WRITES_MAX);
        return;
    }
    if (!silt_rpc_has_room(f->line, f->bytes, 0) || (f->state == UNREAD && f->bytes > UNREAD_MAX))
        break_reader(f, SILT_LIT("[\"error\",\"Error\",\"The stream is not read fast enough.\"]"));
    else
        silt_rpc_upload_flow(f);
}

static void take_write(struct silt_rpc_upload *f, int64_t id, const struct silt_json *value)
{
    struct silt_rpc_refs refs;
    const struct silt_json *bytes =
        silt_rpc_is_tag(value, "bytes") ? silt_rpc_item(value, 1) : NULL;
    if (value != NULL && silt_rpc_refs(value, &refs))
        silt_rpc_let_go(f->line, &refs);
    if (bytes != NULL && bytes->type == SILT_JSON_STRING
        && silt_base64_check(bytes->string) == NULL)
        append(f, new_write(bytes->string), id);
    else
        silt_rpc_say_value(
            f->line, "reject", id,
            SILT_LIT("[\"error\",\"TypeError\",\"A stream of bytes takes bytes only.\"]"));
}

static void take_abort(struct silt_rpc_upload *f, int64_t id, const struct silt_json *value)
{
    silt_auto_buf b;
    struct silt_rpc_refs refs = {0};
    silt_buf_init(&b, 1 << 20);
    bool is_value = value != NULL && silt_rpc_refs(value, &refs);
    silt_rpc_let_go(f->line, &refs);
    if (is_value && refs.count + refs.pipe_count == 0)
        silt_json_value(&b, value);
    break_reader(f, b.len > 0 && !b.broken
                        ? silt_buf_slice(&b)
                        : SILT_LIT("[\"error\",\"Error\",\"The stream was aborted.\"]"));
    silt_rpc_say_value(f->line, "resolve", id, undefined);
}

void silt_rpc_upload_take(struct silt_rpc_upload *f, int64_t id,
                          const struct silt_rpc_invocation *v)
{
    const struct silt_json *name = silt_rpc_item(v->path, 0), *value = silt_rpc_item(v->args, 0);
    silt_slice what = name != NULL && name->type == SILT_JSON_STRING ? name->string : SILT_LIT("");
    if (f->state == BROKEN || f->state == OVER)
        silt_rpc_say_value(f->line, "reject", id, over);
    else if (silt_slice_eq(what, SILT_LIT("write")))
        take_write(f, id, value);
    else if (silt_slice_eq(what, SILT_LIT("abort")))
        take_abort(f, id, value);
    else if (silt_slice_eq(what, SILT_LIT("close"))) {
        struct write *w = new_write(SILT_LIT(""));
        w->end = true;
        append(f, w, id);
    } else {
        silt_rpc_say_value(
            f->line, "reject", id,
            SILT_LIT("[\"error\",\"TypeError\",\"A stream knows write, close and abort.\"]"));
    }
}

void silt_rpc_upload_release(struct silt_rpc_upload *f)
{
    break_reader(f, SILT_LIT("[\"error\",\"Error\",\"The stream was let go before its end.\"]"));
    silt_rpc_upload_free(f);
}
