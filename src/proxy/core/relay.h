/* SPDX-License-Identifier: Apache-2.0 */
/* relay: copies bytes both ways between two connections, in every role of silt-proxy. Bytes that
 * one side does not accept wait in its buffer, and the other side is not read meanwhile, so memory
 * is bounded. End of file on one side becomes a half-close of the other once everything before it
 * is written. A broken socket resets both sides, so that neither takes a truncated stream for a
 * complete one. */
#pragma once

#include "base/buf.h"
#include "event/loop.h"

#include <sys/socket.h>

enum {
    SILT_RELAY_KEEP = 4096,      /* memory that an empty buffer keeps; more goes back */
    SILT_RELAY_PIECE = 64 << 10, /* read at once unless the owner says otherwise */
    SILT_RELAY_PIECE_MAX = 128 << 10,
};

/* Bytes of one connection. -1: it is broken. What was sent is added to *count. */
int silt_relay_flush(int fd, struct silt_buf *b, uint64_t *count);
int silt_relay_forward(int fd, struct silt_buf *b, silt_slice bytes, uint64_t *count);
/* Dead peers are noticed, small pieces leave at once. */
void silt_relay_keep_alive(int fd);
void silt_relay_reset_at_close(int fd); /* fine with -1 */
/* What is read may have to be kept until somebody takes it: the piece that each of `count`
 * connections may read if all together are to keep about `all` bytes. */
size_t silt_relay_share(size_t all, size_t count, size_t most);

enum silt_relay_end {
    SILT_RELAY_CLIENT, /* connected to us */
    SILT_RELAY_SERVER, /* was dialled */
    SILT_RELAY_ENDS,
};

struct silt_relay;

/* How a side that is more than a socket is read and written; NULL members: as a socket. Such a side
 * is borrowed: the relay neither watches nor closes its socket. */
struct silt_relay_io {
    ssize_t (*recv)(struct silt_relay *r, char *out, size_t room); /* as recv */
    int (*send)(struct silt_relay *r, silt_slice bytes); /* keeps in `out` what is not taken */
    int (*flush)(struct silt_relay *r);
    void (*shut)(struct silt_relay *r);
    void (*watch)(struct silt_relay *r, bool reads); /* never NULL */
};

struct silt_relay_side {
    struct silt_watch watch; /* fd -1: not there yet */
    struct silt_buf *out;    /* borrowed: waits to be written to this side */
    uint64_t *count;         /* borrowed: bytes written to it; NULL: nobody counts */
    const struct silt_relay_io *io;
    bool connecting;
    bool paused; /* the owner does not want to read it now */
    bool ended;  /* it says no more */
    bool shut;   /* it was told that the other one says no more */
};

/* Callbacks of whoever embeds a relay; NULL: nothing special happens. Each may end the relay. */
struct silt_relay_owner {
    /* Bytes to read at most; 0: pauses the side. NULL: SILT_RELAY_PIECE. */
    size_t (*room)(struct silt_relay *r, enum silt_relay_end from);
    /* Bytes came; NULL: silt_relay_put to the other side. */
    void (*filter)(struct silt_relay *r, enum silt_relay_end from, silt_slice bytes);
    void (*on_ended)(struct silt_relay *r, enum silt_relay_end from);
    void (*on_connected)(struct silt_relay *r);
    void (*on_broken)(struct silt_relay *r, enum silt_relay_end side); /* NULL: silt_relay_break */
    /* Once, and never NULL: the sockets are closed. The memory must live until the loop's turn is
     * over (silt_loop_bury). */
    void (*on_over)(struct silt_relay *r, bool broken);
};

struct silt_relay {
    struct silt_loop *loop;               /* borrowed */
    const struct silt_relay_owner *owner; /* borrowed */
    struct silt_relay_side sides[SILT_RELAY_ENDS];
    struct silt_timer idle;
    int64_t idle_ms, half_ms;
    int64_t active_ms; /* when bytes moved last, or an end did */
    bool apart;        /* ends are not passed on yet */
    bool eager;        /* a reset is noticed, and breaks, also while its side is not read */
    bool over;
};

/* The sides come by silt_relay_attach and silt_relay_connect. */
void silt_relay_init(struct silt_relay *r, struct silt_loop *loop,
                     const struct silt_relay_owner *owner);
/* Takes `fd`; -1: comes later. */
void silt_relay_attach(struct silt_relay *r, enum silt_relay_end side, int fd, struct silt_buf *out,
                       uint64_t *count);
/* A side whose socket belongs to somebody else, who calls silt_relay_on_ready. */
void silt_relay_borrow(struct silt_relay *r, enum silt_relay_end side, int fd, struct silt_buf *out,
                       const struct silt_relay_io *io);
/* Dials the server with `fd`, which is taken. */
void silt_relay_connect(struct silt_relay *r, int fd, const struct sockaddr *to, socklen_t len);
bool silt_relay_is_connected(const struct silt_relay *r);
/* From now on it breaks after `idle_ms` without bytes, after `half_ms` if a side has ended. */
void silt_relay_limit(struct silt_relay *r, int64_t idle_ms, int64_t half_ms);

/* Writes to a side: bytes, or what waits there. Before it is connected they wait. */
void silt_relay_put(struct silt_relay *r, enum silt_relay_end to, silt_slice bytes);
void silt_relay_push(struct silt_relay *r, enum silt_relay_end to);
bool silt_relay_reads(const struct silt_relay *r, enum silt_relay_end from); /* is it wanted? */
/* Reads one piece, if it is wanted. True: some bytes came, and the relay goes on. */
bool silt_relay_pull(struct silt_relay *r, enum silt_relay_end from);
/* An event of a borrowed side. */
void silt_relay_on_ready(struct silt_relay *r, enum silt_relay_end side, uint32_t events);
/* After everything that the owner changed: passes ends on and watches what is wanted now. */
void silt_relay_settle(struct silt_relay *r);
void silt_relay_break(struct silt_relay *r); /* both sides see a reset; fine when it is over */
