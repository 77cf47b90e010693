/* SPDX-License-Identifier: Apache-2.0 */
/* inspect: reads along what a sandbox sends on one connection, to tell whom it talks to: the name
 * in TLS's hello (and in a second one, that a server may ask for), the host of every request of
 * HTTP/1. Nothing may leave before it was passed. It looks at bytes and at nothing else. Of what
 * the server says one thing counts: whether it turns a connection into a WebSocket. */
#pragma once

#include "http/parse.h"
#include "wire/egress.h"

enum { SILT_INSPECT_HELD_MAX = 24 << 10 }; /* more bytes are never asked for */

enum silt_inspect_result {
    SILT_INSPECT_MORE,     /* more bytes are needed */
    SILT_INSPECT_PASS,     /* so many bytes may go */
    SILT_INSPECT_NAMED,    /* so many bytes may go if `name` may be talked to */
    SILT_INSPECT_NAMELESS, /* so many bytes may go if something without a name may: no web, no TLS
                            */
    SILT_INSPECT_REFUSE,   /* nothing more may go: `reason` */
};

/*  FIRST --a hello--> HELLO --handshake goes on--> FREE
 *    |\---a request--> BODY <--> HEAD
 *    |\---one for a WebSocket--> TURN --101--> FREE, --any other answer--> HEAD
 *    \---neither--> FREE                           */
enum silt_inspect_state {
    SILT_INSPECT_FIRST,
    SILT_INSPECT_HELLO,
    SILT_INSPECT_HEAD,
    SILT_INSPECT_BODY,
    SILT_INSPECT_TURN,
    SILT_INSPECT_FREE,
};

struct silt_inspect { /* zero-initialize */
    enum silt_inspect_state state;
    bool early;      /* TLS: data may come before another hello */
    uint64_t record; /* TLS: bytes of a record that is passed on */
    uint64_t left;   /* HTTP: bytes of the body */
    bool chunked;
    bool asked;      /* HTTP: there has been a request */
    uint8_t turning; /* TURN: bytes of the answer that say 101 so far */
    struct silt_http_chunks chunks;
    enum silt_egress_reason reason;
    char name[SILT_EGRESS_NAME]; /* NAMED: as silt_policy_clean makes it; REFUSE: "" or the name */
};

/* `bytes`: all that have not been passed yet, one at least. */
enum silt_inspect_result silt_inspect_next(struct silt_inspect *i, silt_slice bytes,
                                           size_t *ret_len);
/* In state TURN: what the server says, in the order it came. Afterwards, in another state, `next`
 * is to be asked again about what was held. */
void silt_inspect_hear(struct silt_inspect *i, silt_slice bytes);
