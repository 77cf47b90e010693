/* SPDX-License-Identifier: Apache-2.0 */
#include "http/socket.h"
#include "base/base64.h"
#include "base/own.h"

#include <stdio.h>

enum {
    PING_MS = 25 * 1000,
    KEY_LEN = 24,             /* 16 bytes in base64 */
    MESSAGES_MAX = 256 << 20, /* memory of incomplete messages, all sockets together */
    SMALL = 64 << 10,         /* messages up to this size may exceed that */
};

static size_t messages; /* memory of messages, all sockets */

/* ---- the handshake ---- */

/* The field if it occurs exactly once, else empty. */
static silt_slice only(const struct silt_http_head *h, silt_slice name)
{
    silt_slice found = {NULL, 0};
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        if (silt_slice_ieq(h->fields[i].name, name)) {
            found = h->fields[i].value;
            count++;
        }
    return count == 1 ? found : (silt_slice){NULL, 0};
}

static bool is_key(silt_slice key)
{
    return key.len == KEY_LEN && silt_base64_check(key) == NULL && silt_base64_size(key) == 16;
}

enum silt_socket_verdict silt_socket_judge(const struct silt_http_request *r)
{
    const struct silt_http_head *h = r->head;
    if (!silt_slice_eq(h->method, SILT_LIT("GET"))
        || !silt_http_lists(silt_http_field(h, SILT_LIT("upgrade")), SILT_LIT("websocket")))
        return SILT_SOCKET_NOT_ONE;
    if (!silt_http_lists(silt_http_field(h, SILT_LIT("connection")), SILT_LIT("upgrade")))
        return SILT_SOCKET_BAD;
    if (!silt_slice_eq(only(h, SILT_LIT("sec-websocket-version")), SILT_LIT("13")))
        return SILT_SOCKET_NOT_ONE;
    if (h->minor != 1 || h->chunked || h->length > 0
        || !is_key(only(h, SILT_LIT("sec-websocket-key"))))
        return SILT_SOCKET_BAD;
    return silt_http_may_upgrade(r) ? SILT_SOCKET_FINE : SILT_SOCKET_ENDING;
}

/* ---- closing ---- */

static void count(struct silt_socket *s, size_t bytes)
{
    messages += bytes;
    messages -= s->counted;
    s->counted = bytes;
}

static struct silt_http_request *let_go(struct silt_socket *s)
{
    struct silt_http_request *r = s->request;
    s->request = NULL;
    r->on_gone = NULL;
    r->on_drain = NULL;
    silt_loop_cancel(s->loop, &s->ping);
    count(s, 0);
    silt_ws_reader_fini(&s->reader);
    return r;
}

void silt_socket_close(struct silt_socket *s, int code, silt_slice reason)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_WS_HEAD_MAX + SILT_WS_CONTROL_MAX);
    if (s->request == NULL)
        return;
    silt_ws_put_close(&b, code, reason, NULL);
    silt_http_write(s->request, silt_buf_slice(&b));
    silt_http_end(let_go(s));
}

static void on_gone(struct silt_http_request *r)
{
    struct silt_socket *s = r->owner;
    (void)let_go(s);
    s->on_closed(s);
}

/* Closed by the client, or because of its fault. */
static void close_for_client(struct silt_socket *s, int code)
{
    silt_socket_close(s, code, (silt_slice){NULL, 0});
    s->on_closed(s);
}

/* ---- sending ---- */

void silt_socket_send(struct silt_socket *s, enum silt_ws_op op, silt_slice payload)
{
    silt_auto_buf b;
    silt_buf_init(&b, SILT_WS_HEAD_MAX + payload.len);
    if (s->request == NULL)
        return;
    silt_ws_put(&b, op, payload, NULL);
    if (b.broken)
        abort();
    silt_http_write(s->request, silt_buf_slice(&b));
}

size_t silt_socket_pending(const struct silt_socket *s)
{
    return s->request != NULL ? silt_http_pending(s->request) : SILT_HTTP_MARK;
}

static void on_ping_time(struct silt_timer *t)
{
    struct silt_socket *s = silt_outer(t, struct silt_socket, ping);
    silt_loop_after(s->loop, t, PING_MS);
    if (silt_socket_pending(s) == 0)
        silt_socket_send(s, SILT_WS_PING, (silt_slice){NULL, 0});
}

/* ---- receiving ---- */

static void set_pause(struct silt_socket *s)
{
    if (s->request != NULL)
        silt_http_pause(s->request, s->held || s->choked);
}

void silt_socket_hold(struct silt_socket *s, bool held)
{
    s->held = held;
    set_pause(s);
}

static void on_drain(struct silt_http_request *r)
{
    struct silt_socket *s = r->owner;
    s->choked = false;
    set_pause(s);
    if (s->on_drain != NULL)
        s->on_drain(s);
}

/* Of several pings read at once only the last is answered (RFC 6455 5.5.3). */
struct owed {
    bool pong;
    size_t len;
    char payload[SILT_WS_CONTROL_MAX];
};

static void owe(struct owed *o, silt_slice payload)
{
    o->pong = true;
    o->len = payload.len;
    if (payload.len > 0)
        memcpy(o->payload, payload.data, payload.len);
}

/* False: closed, or everything is consumed. */
static bool take(struct silt_socket *s, silt_slice *bytes, struct owed *o)
{
    silt_slice payload;
    switch (silt_ws_read(&s->reader, bytes, &payload)) {
    case SILT_WS_MORE:
        return false;
    case SILT_WS_GOT_MESSAGE:
        s->on_message(s, s->reader.type == SILT_WS_TEXT, payload);
        return s->request != NULL;
    case SILT_WS_GOT_PING:
        owe(o, payload);
        return true;
    case SILT_WS_GOT_PONG:
        return true;
    case SILT_WS_GOT_CLOSE:
        close_for_client(s, silt_ws_close_code(payload));
        return false;
    case SILT_WS_BAD:
        close_for_client(s, s->reader.code);
        return false;
    }
    return false;
}

static void on_piece(struct silt_http_request *r, silt_slice bytes, bool end)
{
    struct silt_socket *s = r->owner;
    struct owed o = {0};
    (void)end;
    while (take(s, &bytes, &o))
        continue;
    if (s->request == NULL)
        return;
    count(s, s->reader.message.cap);
    if (messages > MESSAGES_MAX && s->counted > SMALL) {
        close_for_client(s, SILT_WS_LATER);
        return;
    }
    if (o.pong)
        silt_socket_send(s, SILT_WS_PONG, (silt_slice){o.payload, o.len});
    s->choked = silt_socket_pending(s) >= SILT_HTTP_MARK;
    if (s->choked)
        set_pause(s);
}

void silt_socket_open(struct silt_socket *s, struct silt_loop *loop, struct silt_http_request *r,
                      size_t max)
{
    char accept[SILT_WS_ACCEPT_SIZE], fields[160];
    silt_ws_accept(only(r->head, SILT_LIT("sec-websocket-key")), accept);
    (void)snprintf(fields, sizeof(fields),
                   "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n",
                   accept);
    s->loop = loop;
    s->request = r;
    s->ping = (struct silt_timer){.on_time = on_ping_time};
    s->counted = 0;
    s->held = s->choked = false;
    silt_ws_reader_init(&s->reader, false, max);
    r->owner = s;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    r->on_halved = NULL;
    silt_loop_after(loop, &s->ping, PING_MS);
    silt_http_upgrade(r, silt_slice_of(fields), on_piece);
}
