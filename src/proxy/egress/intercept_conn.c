/* SPDX-License-Identifier: Apache-2.0 */
/* intercept_conn: one connection of an intercepted sandbox. It peeks at the first bytes, sends a
 * CONNECT to the sidecar and then relays, either unchanged or, where the sidecar acts as the
 * server itself, through TLS that ends here. */
#include "base/sock_diag.h"
#include "base/log.h"
#include "base/own.h"
#include "http/parse.h"
#include "proxy/egress/intercept.h"
#include "proxy/core/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PIECE = SILT_RELAY_PIECE, /* read at once */
    KEPT_ALL = 8 << 20,       /* buffered by all connections in one direction, about */
    WRAPPING = 32 << 10,      /* upper bound for TLS overhead and handshake messages */
    PEEK_MS = 200,            /* for the first byte: in some protocols the server speaks first */
    WHOLE_MS = 2000,          /* for the rest of a recognised first message */
    DECIDE_MS = 30000,        /* to connect to the sidecar and get its response */
    SHAKE_MS = 10000,
    SHAKING_MAX = 2048, /* handshakes at once */
    IDLE_MS = 3600 * 1000,
    HALF_MS = 300 * 1000, /* after a half-close */
    OK = 200,
    ACCEPTED = 202,
    REFUSED = 400,
};

/*  PEEKING --enough, or late--> DIALING --connected--> ASKING --200, 202--> OPEN
 *                                                         \--200, with a name in TLS--> SHAKING
 * --handshake is over--> OPEN */
enum state { PEEKING, DIALING, ASKING, SHAKING, OPEN };

struct offer {
    struct silt_link link;
    struct silt_intercept *captive; /* borrowed: outlives this */
    struct silt_relay relay;        /* the client is the sandbox, the server is the sidecar */
    struct silt_timer late;         /* for every state before OPEN */
    struct silt_grave grave;
    struct sockaddr_storage from, to;
    silt_ip_prefix address;
    uint16_t port;
    enum state state;
    struct silt_http_connect_hints hints;
    struct silt_tls *tls;     /* NULL: bytes pass as they are */
    struct silt_buf first;    /* from the sandbox, before the sidecar has decided */
    struct silt_buf answer;   /* ASKING: the response so far; SHAKING: bytes after it */
    struct silt_buf up, down; /* pending for the server, for the sandbox */
};

static char plain[PIECE]; /* scratch: valid until the next read */

static struct silt_loop *loop_of(const struct offer *o)
{
    return o->captive->all->loop;
}

static struct silt_egress_counts *counts_of(const struct offer *o)
{
    return &o->captive->link->counts;
}

/* The end */

static void free_offer(struct silt_grave *g)
{
    struct offer *o = silt_outer(g, struct offer, grave);
    silt_tls_free(o->tls);
    silt_buf_fini(&o->first);
    silt_buf_fini(&o->answer);
    silt_buf_fini(&o->up);
    silt_buf_fini(&o->down);
    free(o);
}

static void on_over(struct silt_relay *r, bool broken)
{
    struct offer *o = silt_outer(r, struct offer, relay);
    (void)broken;
    silt_loop_cancel(loop_of(o), &o->late);
    silt_list_remove(&o->link);
    counts_of(o)->open--;
    o->captive->all->shaking -= o->state == SHAKING;
    o->captive->all->offers--;
    silt_loop_bury(loop_of(o), &o->grave);
}

static void break_off(struct offer *o)
{
    silt_relay_break(&o->relay);
}

static void refuse(struct offer *o, enum silt_egress_reason why)
{
    struct silt_intercepts *all = o->captive->all;
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    (void)snprintf(r.name, sizeof(r.name), "%s",
                   o->hints.sni[0] != 0 ? o->hints.sni : o->hints.host);
    silt_link_table_put(&r, &o->address, o->port);
    silt_link_table_refuse(all->links, o->captive->link, &r);
    break_off(o);
}

/* The only place that assigns the state. */
static void enter(struct offer *o, enum state next)
{
    static const int64_t limits_ms[] = {
        [PEEKING] = PEEK_MS, [DIALING] = DECIDE_MS, [ASKING] = DECIDE_MS, [SHAKING] = SHAKE_MS};
    struct silt_relay_side *inside = &o->relay.sides[SILT_RELAY_CLIENT],
                           *outside = &o->relay.sides[SILT_RELAY_SERVER];
    o->captive->all->shaking -= o->state == SHAKING;
    o->captive->all->shaking += next == SHAKING;
    o->state = next;
    inside->paused = next == DIALING || next == ASKING;
    outside->paused = next != ASKING && next != OPEN;
    outside->count = next == SHAKING || next == OPEN ? &counts_of(o)->sent_bytes : NULL;
    o->relay.apart = next != OPEN;
    if (next == OPEN) {
        silt_loop_cancel(loop_of(o), &o->late);
        silt_relay_limit(&o->relay, IDLE_MS, HALF_MS);
    } else if (next != ASKING) { /* which shares its deadline with DIALING */
        silt_loop_after(loop_of(o), &o->late, limits_ms[next]);
    }
}

/* Bytes */

/* To the sandbox. */
static void pass_down(struct offer *o, silt_slice bytes)
{
    if (o->tls == NULL)
        silt_relay_put(&o->relay, SILT_RELAY_CLIENT, bytes);
    else if (silt_tls_write(o->tls, bytes) < 0)
        break_off(o);
    else
        silt_relay_push(&o->relay, SILT_RELAY_CLIENT);
}

/* Bytes that the sidecar sent after its response. */
static void pass_kept(struct offer *o)
{
    if (o->answer.len > 0)
        pass_down(o, silt_buf_slice(&o->answer));
    silt_buf_fini(&o->answer);
}

/* Decrypts bytes of the sandbox. When the handshake completes, bytes that the sidecar sent
 * meanwhile follow. */
static void unwrap(struct offer *o, silt_slice wire)
{
    for (;;) {
        ssize_t n = silt_tls_read(o->tls, &wire, plain, sizeof(plain));
        int why = errno;
        if (n > 0)
            silt_relay_put(&o->relay, SILT_RELAY_SERVER, (silt_slice){plain, (size_t)n});
        if (!o->relay.over)
            silt_relay_push(&o->relay, SILT_RELAY_CLIENT); /* handshake messages */
        if (!o->relay.over && o->state == SHAKING && silt_tls_is_open(o->tls)) {
            enter(o, OPEN);
            pass_kept(o);
        }
        if (o->relay.over)
            return;
        if (n > 0)
            continue;
        if (n == 0)
            o->relay.sides[SILT_RELAY_CLIENT].ended = true;
        else if (why != EAGAIN)
            break_off(o);
        return;
    }
}

/* From the sandbox. */
static void pass_up(struct offer *o, silt_slice bytes)
{
    if (o->tls != NULL)
        unwrap(o, bytes);
    else
        silt_relay_put(&o->relay, SILT_RELAY_SERVER, bytes);
}

/* The answer */

/* Without a certificate the connection is broken, never forwarded in clear. False: it is over. */
static bool wrap(struct offer *o)
{
    struct silt_intercept_ca *authority =
        silt_intercept_cas_find(o->captive->all->authorities, o->captive->authority);
    const struct silt_tls_identity *leaf;
    struct silt_error e;
    if (authority == NULL) { /* the sidecar is gone */
        break_off(o);
        return false;
    }
    if (silt_intercept_ca_leaf(authority, o->hints.sni, &leaf, &e) < 0) {
        if (e.code == SILT_LIMIT) {
            refuse(o, SILT_REFUSED_LIMIT);
            return false;
        }
        silt_log(SILT_LOG_WARN, "offer.leaf", "error=\"%s\"", e.text);
        break_off(o);
        return false;
    }
    o->tls = silt_tls_new(leaf, &o->down);
    return true;
}

static void go_on(struct offer *o, int status)
{
    bool wrapped = status == OK && o->hints.sni[0] != 0;
    if (wrapped && o->captive->all->shaking >= SHAKING_MAX) {
        refuse(o, SILT_REFUSED_LIMIT);
        return;
    }
    if (wrapped && !wrap(o))
        return;
    enter(o, wrapped ? SHAKING : OPEN);
    if (!wrapped)
        pass_kept(o);
    if (!o->relay.over && o->first.len > 0)
        pass_up(o, silt_buf_slice(&o->first));
    silt_buf_fini(&o->first);
}

/* When the sidecar dies, any local program could take its port: only the expected user's socket is
 * trusted. */
static bool is_believed(const struct offer *o)
{
    return silt_sock_diag_is_of(o->captive->all->diag, o->relay.sides[SILT_RELAY_SERVER].watch.fd,
                                o->captive->uid);
}

static void on_answer(struct offer *o, silt_slice bytes)
{
    int status = 0;
    silt_buf_add(&o->answer, bytes);
    int len = silt_http_connect_read(silt_buf_slice(&o->answer), &status);
    if (len == 0 && o->answer.len < o->answer.max)
        return;
    if (len > 0 && (status == OK || status == ACCEPTED) && is_believed(o)) {
        silt_buf_drop(&o->answer, (size_t)len);
        go_on(o, status);
        return;
    }
    refuse(o, len > 0 && status == REFUSED ? SILT_REFUSED_BY_OTHER : SILT_REFUSED_NOBODY);
}

/* Asking */

/* Only on this machine's loopback. */
static void dial(struct offer *o)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(o->captive->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (o->captive->port == 0) {
        refuse(o, SILT_REFUSED_NOBODY);
        return;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        break_off(o);
        return;
    }
    enter(o, DIALING);
    silt_http_connect_write(&o->up, &o->to, &o->from, &o->hints);
    silt_relay_connect(&o->relay, fd, (const struct sockaddr *)&to, sizeof(to));
}

/* Looks at the first bytes. */
static void peek(struct offer *o, silt_slice new)
{
    if (o->first.len == 0)
        silt_loop_after(loop_of(o), &o->late, WHOLE_MS);
    bool more = silt_http_connect_has_more(silt_buf_slice(&o->first), new);
    silt_buf_add(&o->first, new);
    if (more && silt_http_connect_look(silt_buf_slice(&o->first), o->port, &o->hints))
        dial(o);
}

static void on_late(struct silt_timer *t)
{
    struct offer *o = silt_outer(t, struct offer, late);
    if (o->state == PEEKING)
        dial(o);
    else if (o->state == SHAKING)
        break_off(o);
    else
        refuse(o, SILT_REFUSED_NOBODY);
}

/* The relay */

static size_t room(struct silt_relay *r, enum silt_relay_end from)
{
    const struct offer *o = silt_outer(r, struct offer, relay);
    if (from == SILT_RELAY_CLIENT && o->state == PEEKING)
        return SILT_HTTP_CONNECT_PEEK_MAX - o->first.len;
    if (from == SILT_RELAY_SERVER && o->state == ASKING)
        return o->answer.max - o->answer.len;
    return silt_relay_share(KEPT_ALL, o->captive->all->offers, PIECE);
}

static void filter(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes)
{
    struct offer *o = silt_outer(r, struct offer, relay);
    if (from == SILT_RELAY_CLIENT && o->state == PEEKING)
        peek(o, bytes);
    else if (from == SILT_RELAY_CLIENT)
        pass_up(o, bytes);
    else if (o->state == ASKING)
        on_answer(o, bytes);
    else
        pass_down(o, bytes);
}

/* The sidecar is missing or went away before it decided. */
static void on_broken(struct silt_relay *r, enum silt_relay_end side)
{
    struct offer *o = silt_outer(r, struct offer, relay);
    bool undecided = o->state == DIALING || o->state == ASKING;
    if (side == SILT_RELAY_SERVER && undecided)
        refuse(o, SILT_REFUSED_NOBODY);
    else
        break_off(o);
}

static void on_ended(struct silt_relay *r, enum silt_relay_end from)
{
    struct offer *o = silt_outer(r, struct offer, relay);
    if (o->state == PEEKING) {
        dial(o); /* a client may half-close after its first bytes */
    } else if (o->state != OPEN) {
        on_broken(r, from);
    } else if (from == SILT_RELAY_SERVER && o->tls != NULL) {
        silt_tls_end(o->tls);
        silt_relay_push(r, SILT_RELAY_CLIENT);
    }
}

static void on_connected(struct silt_relay *r)
{
    enter(silt_outer(r, struct offer, relay), ASKING);
}

static const struct silt_relay_owner owner = {.room = room,
                                              .filter = filter,
                                              .on_ended = on_ended,
                                              .on_connected = on_connected,
                                              .on_broken = on_broken,
                                              .on_over = on_over};

/* The beginning */

void silt_intercept_conn_begin(struct silt_intercept *captive,
                               const struct silt_intercept_conn_caller *c)
{
    struct offer *o = malloc(sizeof(*o));
    if (o == NULL)
        abort();
    *o = (struct offer){.captive = captive,
                        .late = {.on_time = on_late},
                        .grave = {.free = free_offer},
                        .from = c->from,
                        .to = c->to,
                        .address = c->address,
                        .port = c->port};
    silt_buf_init(&o->first, SILT_HTTP_CONNECT_PEEK_MAX);
    silt_buf_init(&o->answer, SILT_HTTP_HEAD_MAX);
    silt_buf_init(&o->up, PIECE + SILT_HTTP_CONNECT_PEEK_MAX);
    silt_buf_init(&o->down, PIECE + WRAPPING);
    silt_list_init(&o->link);
    silt_list_append(&captive->offers, &o->link);
    captive->all->offers++;
    struct silt_egress_counts *counts = counts_of(o);
    counts->open++;
    counts->connections++;
    counts->requests++;
    silt_relay_init(&o->relay, loop_of(o), &owner);
    silt_relay_attach(&o->relay, SILT_RELAY_CLIENT, c->fd, &o->down, &counts->received_bytes);
    silt_relay_attach(&o->relay, SILT_RELAY_SERVER, -1, &o->up, NULL);
    enter(o, PEEKING);
    silt_relay_settle(&o->relay);
}

void silt_intercept_conns_cut(struct silt_intercept *captive)
{
    silt_list_each(it, &captive->offers) break_off(silt_outer(it, struct offer, link));
}
