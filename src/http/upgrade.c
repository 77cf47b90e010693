/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade: connections that stop being HTTP: those that switch to another protocol, and those
 * handed over to another owner. */
#include "base/clock.h"
#include "base/own.h"
#include "http/conn.h"

#include <assert.h>
#include <sys/socket.h>

static struct silt_http_exchange *exchange_of(struct silt_http_request *r)
{
    return silt_outer(r, struct silt_http_exchange, request);
}

bool silt_http_may_upgrade(const struct silt_http_request *r)
{
    const struct silt_http_exchange *x = (const struct silt_http_exchange *)(const void *)r;
    const struct silt_http_conn *c = x->conn;
    return c != NULL && !c->server->draining && !c->last && x->head.minor == 1
           && x->wish == SILT_HTTP_UNDECIDED && !silt_http_conn_has_body(c);
}

void silt_http_upgrade(struct silt_http_request *r, silt_slice fields,
                       void (*on_piece)(struct silt_http_request *r, silt_slice piece, bool end))
{
    struct silt_http_exchange *x = exchange_of(r);
    struct silt_http_conn *c = x->conn;
    assert(silt_http_may_upgrade(r));
    silt_http_answer_switch(
        x, fields); /* first: once there is a body, its unread bytes would close the connection */
    c->raw = true;
    c->left = UINT64_MAX;
    silt_http_consume(r, UINT64_MAX, on_piece);
    x->body_max = UINT64_MAX;
    silt_http_conn_enter(c, SILT_HTTP_BODY);
}

bool silt_http_may_upgrade_late(const struct silt_http_request *r)
{
    const struct silt_http_exchange *x = (const struct silt_http_exchange *)(const void *)r;
    const struct silt_http_conn *c = x->conn;
    return c != NULL && !c->server->draining && !c->last && x->head.minor == 1
           && x->wish == SILT_HTTP_COLLECT && c->intake == SILT_HTTP_NOTHING && !x->streaming;
}

void silt_http_upgrade_late(struct silt_http_request *r, silt_slice fields,
                            void (*on_piece)(struct silt_http_request *r, silt_slice piece,
                                             bool end))
{
    struct silt_http_exchange *x = exchange_of(r);
    struct silt_http_conn *c = x->conn;
    assert(silt_http_may_upgrade_late(r));
    silt_http_answer_switch(x, fields);
    x->wish = SILT_HTTP_UNDECIDED;
    x->continued = true; /* the client sent its body without waiting for a 100, which would now be
                            part of the stream */
    x->head.length = 0;
    c->chunked = false;
    c->raw = true;
    c->left = UINT64_MAX;
    c->taken = 0;
    silt_http_consume(r, UINT64_MAX, on_piece);
    x->body_max = UINT64_MAX;
    silt_http_conn_enter(c, SILT_HTTP_BODY);
    silt_http_server_defer(c); /* bytes after the body are waiting */
}

void silt_http_redirect(struct silt_http_request *r, silt_slice path)
{
    exchange_of(r)->head.path = path;
}

void silt_http_redirect_query(struct silt_http_request *r, silt_slice query)
{
    exchange_of(r)->head.query = query;
}

int silt_http_connection(const struct silt_http_request *r)
{
    const struct silt_http_exchange *x = (const struct silt_http_exchange *)(const void *)r;
    return x->conn != NULL ? x->conn->watch.fd : -1;
}

uint32_t silt_http_peer(const struct silt_http_request *r)
{
    const struct silt_http_exchange *x = (const struct silt_http_exchange *)(const void *)r;
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (x->conn == NULL || getsockopt(x->conn->watch.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return UINT32_MAX;
    return peer.uid;
}

void silt_http_take_over(struct silt_http_request *r,
                         void (*on_taken)(struct silt_http_request *r, int fd, silt_slice read))
{
    struct silt_http_exchange *x = exchange_of(r);
    assert(x->conn != NULL && x->wish == SILT_HTTP_UNDECIDED && !x->streaming);
    x->on_taken = on_taken;
    silt_http_conn_enter(x->conn, SILT_HTTP_TAKEN);
    silt_http_server_defer(x->conn);
}

void silt_http_conn_hand_over(struct silt_http_conn *c)
{
    struct silt_http_exchange *x = c->exchange;
    const struct silt_http_hooks *hooks = &c->server->hooks;
    silt_loop_forget(c->server->loop, &c->watch);
    x->on_taken(&x->request, silt_take_fd(&c->watch.fd), silt_buf_slice(&c->in));
    if (hooks->on_answered != NULL)
        hooks->on_answered(hooks->context, &x->request, 101, silt_clock_us() - x->started_us);
    c->exchange = NULL;
    silt_http_server_give_back(x);
    silt_http_conn_close(c);
}
