/* SPDX-License-Identifier: Apache-2.0 */
/* offer: one connection of a captive sandbox: a look at its first bytes, a CONNECT to the program that decides, and then bytes both ways,
 * as they are or, where that program wants to be the server itself, out of TLS and into it. */
#include "base/diag.h"
#include "base/log.h"
#include "base/own.h"
#include "http/parse.h"
#include "proxy/captive.h"
#include "proxy/flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

enum {
    PIECE = 64 << 10, /* read at once */
    PIECE_LEAST = 4 << 10,
    KEPT_ALL = 8 << 20,  /* what all offers together keep in one direction, about */
    WRAPPING = 32 << 10, /* what TLS adds to a piece and says of itself, at most */
    PEEK_MS = 200,       /* for the first byte: a server may be the one who speaks first */
    WHOLE_MS = 2000,     /* for the rest of what began like something that we read */
    DECIDE_MS = 30000,   /* to be connected, and to be answered */
    SHAKE_MS = 10000,
    SHAKING_MAX = 2048, /* handshakes at once */
    IDLE_MS = 3600 * 1000,
    HALF_MS = 300 * 1000, /* one side has nothing more to say */
    OK = 200,
    ACCEPTED = 202,
    REFUSED = 400,
};

/*  PEEKING --enough, or late--> DIALING --connected--> ASKING --200, 202--> OPEN
 *                                                         \--200, with a name in TLS--> SHAKING --handshake is over--> OPEN */
enum state { PEEKING, DIALING, ASKING, SHAKING, OPEN };

struct offer {
    struct silt_link link;
    struct silt_captive *captive; /* borrowed: lives longer */
    struct silt_watch inside, outside;
    struct silt_timer late;
    struct silt_grave grave;
    struct sockaddr_storage from, to;
    silt_prefix address;
    uint16_t port;
    enum state state;
    struct silt_connect_hints hints;
    struct silt_tls *tls;             /* NULL: bytes pass as they are */
    struct silt_buf first;            /* from inside, before somebody has decided */
    struct silt_buf answer;           /* ASKING: what has come; SHAKING: what is behind it */
    struct silt_buf up, down;         /* to be written outside, inside */
    bool inside_ended, outside_ended; /* have nothing more to say */
    bool up_shut, down_shut;          /* and the other one has been told */
    int64_t active_ms;
};

static char piece[PIECE], plain[PIECE];

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
    struct offer *o = silt_container_of(g, struct offer, grave);
    silt_tls_free(o->tls);
    silt_buf_fini(&o->first);
    silt_buf_fini(&o->answer);
    silt_buf_fini(&o->up);
    silt_buf_fini(&o->down);
    free(o);
}

static void close_watch(struct offer *o, struct silt_watch *w)
{
    if (w->fd < 0)
        return;
    silt_loop_forget(loop_of(o), w);
    silt_close_fd(&w->fd);
}

static void end(struct offer *o)
{
    close_watch(o, &o->inside);
    close_watch(o, &o->outside);
    silt_loop_cancel(loop_of(o), &o->late);
    silt_list_remove(&o->link);
    counts_of(o)->open--;
    o->captive->all->shaking -= o->state == SHAKING;
    o->captive->all->offers--;
    silt_loop_bury(loop_of(o), &o->grave);
}

/* Both sides see a reset: nobody takes half of something for the whole. */
static void break_off(struct offer *o)
{
    silt_flow_reset_at_close(o->inside.fd);
    silt_flow_reset_at_close(o->outside.fd);
    end(o);
}

static void refuse(struct offer *o, enum silt_egress_reason why)
{
    struct silt_captives *all = o->captive->all;
    struct silt_egress_refusal r = {.protocol = SILT_EGRESS_TCP, .reason = (uint8_t)why};
    (void)snprintf(r.name, sizeof(r.name), "%s", o->hints.sni[0] != 0 ? o->hints.sni : o->hints.host);
    silt_links_put(&r, &o->address, o->port);
    silt_links_refuse(all->links, o->captive->link, &r);
    break_off(o);
}

static size_t piece_of(const struct offer *o)
{
    size_t share = KEPT_ALL / o->captive->all->offers;
    if (share > PIECE)
        return PIECE;
    return share > PIECE_LEAST ? share : PIECE_LEAST;
}

/* The only place that assigns the state. */
static void enter(struct offer *o, enum state next)
{
    static const int64_t limits_ms[] = {[PEEKING] = PEEK_MS, [DIALING] = DECIDE_MS, [ASKING] = DECIDE_MS,
                                        [SHAKING] = SHAKE_MS, [OPEN] = HALF_MS};
    o->captive->all->shaking -= o->state == SHAKING;
    o->captive->all->shaking += next == SHAKING;
    o->state = next;
    if (next != ASKING) /* which shares its deadline with DIALING */
        silt_loop_after(loop_of(o), &o->late, limits_ms[next]);
}

static bool hears_outside(const struct offer *o)
{
    return (o->state == ASKING || o->state == OPEN) && !o->outside_ended && o->down.len == 0;
}

static bool hears_inside(const struct offer *o)
{
    bool wanted = o->state == PEEKING || o->state == SHAKING || o->state == OPEN;
    return wanted && !o->inside_ended && o->up.len == 0;
}

static void watch(struct offer *o)
{
    uint32_t inside = (hears_inside(o) ? (uint32_t)EPOLLIN : 0U) | (o->down.len > 0 ? (uint32_t)EPOLLOUT : 0U);
    uint32_t outside = hears_outside(o) ? EPOLLIN : 0U;
    silt_loop_watch(loop_of(o), &o->inside, inside);
    if (o->outside.fd < 0)
        return;
    if (o->state == DIALING || o->up.len > 0)
        outside |= EPOLLOUT;
    silt_loop_watch(loop_of(o), &o->outside, outside);
}

/* A side that said its last word has been heard: the other one is told. */
static void pass_ends_on(struct offer *o)
{
    if (o->state != OPEN)
        return;
    if (o->inside_ended && !o->up_shut && o->up.len == 0) {
        (void)shutdown(o->outside.fd, SHUT_WR);
        o->up_shut = true;
    }
    if (o->outside_ended && !o->down_shut && o->down.len == 0) {
        (void)shutdown(o->inside.fd, SHUT_WR);
        o->down_shut = true;
    }
}

/* After everything that happened, once. */
static void settle(struct offer *o)
{
    pass_ends_on(o);
    if (o->up_shut && o->down_shut)
        end(o);
    else
        watch(o);
}

/* Bytes. Each answers false when it is over. */

static bool flush(struct offer *o)
{
    uint64_t ours = 0; /* the CONNECT */
    uint64_t *sent = o->state == ASKING ? &ours : &counts_of(o)->sent_bytes;
    bool connected = o->outside.fd >= 0 && o->state != DIALING;
    if (silt_flow_flush(o->inside.fd, &o->down, &counts_of(o)->received_bytes) == 0
        && (!connected || silt_flow_flush(o->outside.fd, &o->up, sent) == 0))
        return true;
    break_off(o);
    return false;
}

/* To the sandbox. */
static bool pass_down(struct offer *o, silt_slice bytes)
{
    uint64_t *count = &counts_of(o)->received_bytes;
    bool good = o->tls == NULL ? silt_flow_forward(o->inside.fd, &o->down, bytes, count) == 0
                               : silt_tls_write(o->tls, bytes) == 0 && !o->down.broken
                                     && silt_flow_flush(o->inside.fd, &o->down, count) == 0;
    if (!good)
        break_off(o);
    return good;
}

static bool pass_up(struct offer *o, silt_slice bytes)
{
    if (silt_flow_forward(o->outside.fd, &o->up, bytes, &counts_of(o)->sent_bytes) == 0)
        return true;
    break_off(o);
    return false;
}

/* The handshake is over: what the program said meanwhile goes in. */
static bool on_shaken(struct offer *o)
{
    if (o->state != SHAKING || !silt_tls_is_open(o->tls))
        return true;
    enter(o, OPEN);
    bool good = o->answer.len == 0 || pass_down(o, silt_buf_slice(&o->answer));
    silt_buf_fini(&o->answer);
    return good;
}

/* What the sandbox said, out of TLS. */
static bool unwrap(struct offer *o, silt_slice wire)
{
    for (;;) {
        ssize_t n = silt_tls_read(o->tls, &wire, plain, sizeof(plain));
        int why = errno;
        if (n > 0 && !pass_up(o, (silt_slice){plain, (size_t)n}))
            return false;
        if (!flush(o) || !on_shaken(o)) /* handshakes talk, too */
            return false;
        if (n > 0)
            continue;
        o->inside_ended = o->inside_ended || n == 0;
        if (n == 0 || why == EAGAIN)
            return true;
        break_off(o);
        return false;
    }
}

static bool on_bytes(struct offer *o, silt_slice bytes)
{
    return o->tls != NULL ? unwrap(o, bytes) : pass_up(o, bytes);
}

static bool read_inside(struct offer *o)
{
    ssize_t n = recv(o->inside.fd, piece, piece_of(o), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0)
        return on_bytes(o, (silt_slice){piece, (size_t)n});
    if (n == 0 && o->state == OPEN) {
        o->inside_ended = true;
        return true;
    }
    break_off(o);
    return false;
}

static bool read_outside(struct offer *o)
{
    ssize_t n = recv(o->outside.fd, piece, piece_of(o), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0)
        return pass_down(o, (silt_slice){piece, (size_t)n});
    if (n < 0) {
        break_off(o);
        return false;
    }
    o->outside_ended = true;
    if (o->tls != NULL)
        silt_tls_end(o->tls);
    return flush(o);
}

/* The answer */

/* A certificate that cannot be had is the end: nothing of this is to be read by anybody else. */
static bool wrap(struct offer *o)
{
    struct silt_authority *authority = silt_authorities_find(o->captive->all->authorities, o->captive->authority);
    const struct silt_tls_identity *leaf;
    struct silt_error e;
    if (authority == NULL) { /* its sidecar is gone */
        break_off(o);
        return false;
    }
    if (silt_authority_leaf(authority, o->hints.sni, &leaf, &e) < 0) {
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

static bool go_on(struct offer *o, int status)
{
    bool wrapped = status == OK && o->hints.sni[0] != 0;
    if (wrapped && o->captive->all->shaking >= SHAKING_MAX) {
        refuse(o, SILT_REFUSED_LIMIT);
        return false;
    }
    if (wrapped && !wrap(o))
        return false;
    enter(o, wrapped ? SHAKING : OPEN);
    if (!wrapped && o->answer.len > 0 && !pass_down(o, silt_buf_slice(&o->answer)))
        return false;
    if (!wrapped)
        silt_buf_fini(&o->answer);
    if (o->first.len > 0 && !on_bytes(o, silt_buf_slice(&o->first)))
        return false;
    silt_buf_fini(&o->first);
    return true;
}

/* A program that has died leaves its port to anybody on this machine, and nobody is to read what was meant for it. */
static bool is_believed(const struct offer *o)
{
    return silt_diag_is_of(o->captive->all->diag, o->outside.fd, o->captive->uid);
}

static bool on_answer(struct offer *o)
{
    int status = 0;
    int len = silt_connect_read(silt_buf_slice(&o->answer), &status);
    if (len == 0 && o->answer.len < o->answer.max)
        return true;
    if (len > 0 && (status == OK || status == ACCEPTED) && is_believed(o)) {
        silt_buf_drop(&o->answer, (size_t)len);
        return go_on(o, status);
    }
    refuse(o, len > 0 && status == REFUSED ? SILT_REFUSED_BY_OTHER : SILT_REFUSED_NOBODY);
    return false;
}

static bool read_answer(struct offer *o)
{
    ssize_t n = recv(o->outside.fd, piece, o->answer.max - o->answer.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        refuse(o, SILT_REFUSED_NOBODY);
        return false;
    }
    silt_buf_add(&o->answer, (silt_slice){piece, (size_t)n});
    return on_answer(o);
}

/* Outside */

static bool on_connected(struct offer *o)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(o->outside.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
        refuse(o, SILT_REFUSED_NOBODY);
        return false;
    }
    enter(o, ASKING);
    return true;
}

static void on_outside(struct silt_watch *w, uint32_t events)
{
    struct offer *o = silt_container_of(w, struct offer, outside);
    o->active_ms = loop_of(o)->now_ms;
    if (o->state == DIALING && !on_connected(o))
        return;
    if (!flush(o))
        return;
    if (o->state == ASKING && !read_answer(o))
        return;
    if (o->state == OPEN && hears_outside(o) && !read_outside(o))
        return;
    if (o->outside_ended && (events & EPOLLERR) != 0)
        break_off(o);
    else
        settle(o);
}

/* On this machine's loopback, and nowhere else. */
static void dial(struct offer *o)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(o->captive->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        break_off(o);
        return;
    }
    o->outside = (struct silt_watch){.fd = fd, .on_ready = on_outside};
    silt_flow_keep_alive(fd);
    if (o->captive->port == 0
        || (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
        refuse(o, SILT_REFUSED_NOBODY);
        return;
    }
    enter(o, DIALING);
    silt_connect_write(&o->up, &o->to, &o->from, &o->hints);
    watch(o);
}

/* Inside */

/* What has come is looked at; the last word may have been said, too. */
static void peek(struct offer *o)
{
    ssize_t n = recv(o->inside.fd, piece, SILT_CONNECT_PEEK_MAX - o->first.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        break_off(o);
        return;
    }
    if (n > 0 && o->first.len == 0)
        silt_loop_after(loop_of(o), &o->late, WHOLE_MS);
    silt_slice new = {piece, (size_t)n};
    bool more = silt_connect_has_more(silt_buf_slice(&o->first), new);
    silt_buf_add(&o->first, new);
    o->inside_ended = n == 0;
    if (n > 0 && !more)
        return;
    if (n == 0 || silt_connect_look(silt_buf_slice(&o->first), o->port, &o->hints))
        dial(o);
}

static void on_inside(struct silt_watch *w, uint32_t events)
{
    struct offer *o = silt_container_of(w, struct offer, inside);
    o->active_ms = loop_of(o)->now_ms;
    if (o->state == PEEKING) {
        peek(o);
        return;
    }
    if (!flush(o) || (hears_inside(o) && !read_inside(o)))
        return;
    if (o->inside_ended && (events & EPOLLERR) != 0)
        break_off(o);
    else
        settle(o);
}

static void on_late(struct silt_timer *t)
{
    struct offer *o = silt_container_of(t, struct offer, late);
    int64_t limit = o->inside_ended || o->outside_ended ? HALF_MS : IDLE_MS;
    int64_t left = o->active_ms + limit - loop_of(o)->now_ms;
    if (o->state == PEEKING)
        dial(o);
    else if (o->state == DIALING || o->state == ASKING)
        refuse(o, SILT_REFUSED_NOBODY);
    else if (o->state == SHAKING || left <= 0)
        break_off(o);
    else
        silt_loop_after(loop_of(o), t, left < HALF_MS ? left : HALF_MS);
}

/* The beginning */

void silt_offer_begin(struct silt_captive *captive, const struct silt_offer_caller *c)
{
    struct offer *o = malloc(sizeof(*o));
    if (o == NULL)
        abort();
    *o = (struct offer){.captive = captive,
                        .inside = {.fd = c->fd, .on_ready = on_inside},
                        .outside = {.fd = -1},
                        .late = {.on_time = on_late},
                        .grave = {.free = free_offer},
                        .from = c->from,
                        .to = c->to,
                        .address = c->address,
                        .port = c->port,
                        .active_ms = captive->all->loop->now_ms};
    silt_buf_init(&o->first, SILT_CONNECT_PEEK_MAX);
    silt_buf_init(&o->answer, SILT_HTTP_HEAD_MAX);
    silt_buf_init(&o->up, PIECE + SILT_CONNECT_PEEK_MAX);
    silt_buf_init(&o->down, PIECE + WRAPPING);
    silt_list_init(&o->link);
    silt_list_append(&captive->offers, &o->link);
    captive->all->offers++;
    struct silt_egress_counts *counts = counts_of(o);
    counts->open++;
    counts->connections++;
    counts->requests++;
    silt_flow_keep_alive(c->fd);
    enter(o, PEEKING);
    watch(o);
}

void silt_offers_cut(struct silt_captive *captive)
{
    silt_list_each(it, &captive->offers) break_off(silt_container_of(it, struct offer, link));
}
