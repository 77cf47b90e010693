/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/preview/tls_conn.h"
#include "proxy/core/relay.h"

#include <errno.h>
#include <stdlib.h>

enum {
    ARRIVED_MAX = SILT_CLIENT_CONN_PIECE,
    WIRE_MAX = 4 * SILT_CLIENT_CONN_PIECE, /* v->out as records, and handshake messages */
    OWN_MAX = 8 << 10,                     /* of handshake messages */
};

struct silt_tls_conn {
    struct silt_client_conn *visitor; /* borrowed */
    struct silt_tls *tls;
    struct silt_buf wire;   /* records to send */
    size_t covered;         /* bytes of v->out that became records in wire */
    struct silt_buf rest;   /* received, not decrypted yet */
    struct silt_timer more; /* input is already buffered */
    bool shut;              /* close_notify is in wire */
};

static char arrived[ARRIVED_MAX]; /* scratch: valid until the next read */

static void on_more(struct silt_timer *t)
{
    struct silt_tls_conn *l = silt_outer(t, struct silt_tls_conn, more);
    struct silt_watch *w = &l->visitor->watch;
    w->on_ready(w, EPOLLIN);
}

struct silt_tls_conn *silt_tls_conn_new(struct silt_client_conn *v,
                                        const struct silt_tls_identity *identity)
{
    struct silt_tls_conn *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    l->visitor = v;
    l->more.on_time = on_more;
    silt_buf_init(&l->wire, WIRE_MAX);
    silt_buf_init(&l->rest, ARRIVED_MAX);
    l->tls = silt_tls_new(identity, &l->wire);
    return l;
}

void silt_tls_conn_stop(struct silt_tls_conn *l)
{
    silt_loop_cancel(l->visitor->all->loop, &l->more);
}

void silt_tls_conn_free(struct silt_tls_conn *l)
{
    if (l == NULL)
        return;
    silt_tls_free(l->tls);
    silt_buf_fini(&l->wire);
    silt_buf_fini(&l->rest);
    free(l);
}

/* From the client */

/* Reads as many bytes as decrypt to at most `room`, minus one record, because only whole records
 * can be opened. */
static ssize_t take(struct silt_tls_conn *l, size_t room, silt_slice *ret)
{
    size_t want = room > 2 * SILT_TLS_RECORD_MAX ? room - SILT_TLS_RECORD_MAX : room;
    ssize_t n = recv(l->visitor->watch.fd, arrived, want < sizeof(arrived) ? want : sizeof(arrived),
                     MSG_DONTWAIT);
    if (n > 0)
        *ret = (silt_slice){arrived, (size_t)n};
    else if (n == 0)
        errno = ECONNRESET; /* the end of the connection is not the visitor's word: anybody between
                               us can bring it about */
    return n > 0 ? n : -1;
}

/* Keeps undecrypted bytes. */
static void keep(struct silt_tls_conn *l, silt_slice left)
{
    if (l->rest.len > 0)
        silt_buf_drop(&l->rest, l->rest.len - left.len);
    else
        silt_buf_add(&l->rest, left);
    if (l->rest.len == 0 && l->rest.cap > 0)
        silt_buf_fini(&l->rest);
}

static int send_wire(struct silt_tls_conn *l)
{
    uint64_t ignored = 0;
    return l->wire.broken ? -1 : silt_relay_flush(l->visitor->watch.fd, &l->wire, &ignored);
}

/* After a TLS error input is unauthenticated: only LINGER, which discards it, may read it. */
static ssize_t recv_broken(struct silt_tls_conn *l, char *out, size_t room)
{
    if (l->visitor->state == SILT_CLIENT_CONN_LINGER)
        return recv(l->visitor->watch.fd, out, room, MSG_DONTWAIT);
    errno = EPROTO;
    return -1;
}

ssize_t silt_tls_conn_recv(struct silt_tls_conn *l, char *out, size_t room)
{
    silt_slice wire = silt_buf_slice(&l->rest);
    if (silt_tls_is_broken(l->tls))
        return recv_broken(l, out, room);
    if (wire.len == 0 && !silt_tls_has_more(l->tls) && take(l, room, &wire) < 0)
        return -1;
    ssize_t n = silt_tls_read(l->tls, &wire, out, room);
    int why = errno;
    keep(l, wire);
    if (send_wire(l) < 0) {
        errno = EPIPE;
        return -1;
    }
    errno = why;
    return n;
}

void silt_tls_conn_wants(struct silt_tls_conn *l)
{
    bool some = l->rest.len > 0 || silt_tls_has_more(l->tls)
                || silt_tls_is_broken(l->tls); /* also to report the error */
    if (some && l->visitor->state != SILT_CLIENT_CONN_LINGER && l->more.place == 0)
        silt_loop_after(l->visitor->all->loop, &l->more, 0);
}

/* To the client */

static void end_if_shut(struct silt_tls_conn *l)
{
    if (l->shut && l->wire.len == 0)
        (void)shutdown(l->visitor->watch.fd, SHUT_WR);
}

int silt_tls_conn_flush(struct silt_tls_conn *l)
{
    struct silt_buf *out = &l->visitor->out;
    for (;;) {
        if (out->broken || send_wire(l) < 0)
            return -1;
        if (l->wire.len > 0)
            return 0;
        silt_buf_drop(out, l->covered);
        l->covered = 0;
        if (out->len == 0)
            break;
        if (silt_tls_write(l->tls, silt_buf_slice(out)) < 0)
            return -1;
        l->covered = out->len;
    }
    if (out->cap > SILT_RELAY_KEEP)
        silt_buf_fini(out);
    end_if_shut(l);
    return 0;
}

void silt_tls_conn_shut(struct silt_tls_conn *l)
{
    l->shut = true;
    silt_tls_end(l->tls);
    (void)send_wire(l);
    end_if_shut(l);
}

void silt_tls_conn_shrink(struct silt_tls_conn *l)
{
    if (l->wire.len == 0 && l->wire.cap > 0)
        silt_buf_fini(&l->wire);
}

bool silt_tls_conn_is_up(const struct silt_tls_conn *l)
{
    return silt_tls_is_open(l->tls);
}

bool silt_tls_conn_waits(const struct silt_tls_conn *l)
{
    return l->wire.len > 0;
}

bool silt_tls_conn_is_chatty(const struct silt_tls_conn *l)
{
    return l->wire.len > l->covered + OWN_MAX;
}
