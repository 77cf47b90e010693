/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade: relays bytes both ways after the service has answered 101, within the sandbox's
 * bandwidth. */
#include "proxy/preview/request.h"
#include "proxy/preview/tls_conn.h"

static struct silt_proxied_request *request_of(struct silt_relay *r)
{
    return silt_outer(r, struct silt_proxied_request, relay);
}

/* The client, with or without TLS */

static ssize_t recv_visitor(struct silt_relay *r, char *out, size_t room)
{
    return silt_client_conn_recv(request_of(r)->visitor, out, room);
}

static int send_visitor(struct silt_relay *r, silt_slice bytes)
{
    return silt_client_conn_send(request_of(r)->visitor, bytes);
}

static int flush_visitor(struct silt_relay *r)
{
    return silt_client_conn_flush(request_of(r)->visitor);
}

static void shut_visitor(struct silt_relay *r)
{
    silt_client_conn_shut(request_of(r)->visitor);
}

static void watch_visitor(struct silt_relay *r, bool reads)
{
    struct silt_client_conn *v = request_of(r)->visitor;
    silt_client_conn_watch(v, reads && !silt_client_conn_is_chatty(v));
}

static const struct silt_relay_io visitor_io = {.recv = recv_visitor,
                                                .send = send_visitor,
                                                .flush = flush_visitor,
                                                .shut = shut_visitor,
                                                .watch = watch_visitor};

/* The service */

static int flush_service(struct silt_relay *r)
{
    silt_forward_flush(request_of(r));
    return 0; /* a write error must not lose what the service sent before it closed */
}

static void watch_service(struct silt_relay *r, bool reads)
{
    silt_forward_watch(request_of(r), reads);
}

static const struct silt_relay_io service_io = {.flush = flush_service, .watch = watch_service};

static void on_upstream(struct silt_upstream *u, uint32_t events)
{
    struct silt_proxied_request *x = u->owner;
    struct silt_client_conn *v = x->visitor;
    silt_relay_on_ready(&x->relay, SILT_RELAY_SERVER, events);
    silt_client_conn_settle(v);
}

/* The relay */

static enum silt_bandwidth_way way_of(enum silt_relay_end from)
{
    return from == SILT_RELAY_CLIENT ? SILT_BANDWIDTH_UP : SILT_BANDWIDTH_DOWN;
}

static size_t room(struct silt_relay *r, enum silt_relay_end from)
{
    return silt_forward_room(request_of(r), way_of(from));
}

static void filter(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes)
{
    silt_bandwidth_spend(request_of(r)->route->guest, way_of(from), bytes.len);
    silt_relay_put(r, from == SILT_RELAY_CLIENT ? SILT_RELAY_SERVER : SILT_RELAY_CLIENT, bytes);
}

static void on_ended(struct silt_relay *r, enum silt_relay_end from)
{
    if (from == SILT_RELAY_CLIENT)
        request_of(r)->visitor->halved = true;
}

static void on_over(struct silt_relay *r, bool broken)
{
    struct silt_proxied_request *x = request_of(r);
    if (broken) {
        silt_client_conn_cut(x->visitor);
        return;
    }
    silt_proxied_request_enter_response(x, SILT_PROXIED_RESPONSE_COMPLETE);
    silt_proxied_request_over(x);
}

void silt_upgrade_start(struct silt_proxied_request *x)
{
    static const struct silt_relay_owner owner = {
        .room = room, .filter = filter, .on_ended = on_ended, .on_over = on_over};
    struct silt_client_conn *v = x->visitor;
    silt_proxied_request_enter(x, SILT_PROXIED_REQUEST_TUNNEL);
    x->up->on_ready = on_upstream;
    silt_relay_init(&x->relay, v->all->loop, &owner);
    silt_relay_borrow(&x->relay, SILT_RELAY_CLIENT, v->watch.fd, &v->out, &visitor_io);
    silt_relay_borrow(&x->relay, SILT_RELAY_SERVER, x->up->watch.fd, &x->to_up, &service_io);
    silt_buf_add(&x->to_up, silt_buf_slice(&v->in)); /* read together with the request */
    silt_buf_drop(&v->in, v->in.len);
}

void silt_upgrade_on_visitor(struct silt_proxied_request *x)
{
    struct silt_client_conn *v = x->visitor;
    if (silt_relay_reads(&x->relay, SILT_RELAY_CLIENT) && !silt_client_conn_is_chatty(v))
        (void)silt_relay_pull(&x->relay, SILT_RELAY_CLIENT);
    else
        v->noisy = true;
}
