/* SPDX-License-Identifier: Apache-2.0 */
/* protocol_sniff: follows what a sandbox sends on one connection to learn the host: the SNI of a
 * TLS ClientHello (also of a second one after a HelloRetryRequest) and the Host of every HTTP/1
 * request. No byte may leave before it was released here. Works on bytes only. Of the server's
 * side it looks at one thing: whether it upgrades to a WebSocket. */
#pragma once

#include "http/parse.h"
#include "wire/egress.h"

enum { SILT_PROTOCOL_SNIFF_HELD_MAX = 24 << 10 }; /* more bytes are never asked for */

enum silt_protocol_sniff_result {
    SILT_PROTOCOL_SNIFF_MORE,     /* more bytes are needed */
    SILT_PROTOCOL_SNIFF_PASS,     /* so many bytes may go */
    SILT_PROTOCOL_SNIFF_NAMED,    /* so many bytes may go if `name` may be talked to */
    SILT_PROTOCOL_SNIFF_NAMELESS, /* so many bytes may go if something without a name may: no web,
                                   * no TLS
                                   */
    SILT_PROTOCOL_SNIFF_REFUSE,   /* nothing more may go: `reason` */
};

/*  FIRST --a hello--> HELLO --handshake goes on--> FREE
 *    |\---a request--> BODY <--> HEAD
 *    |\---one for a WebSocket--> TURN --101--> FREE, --any other answer--> HEAD
 *    \---neither--> FREE                           */
enum silt_protocol_sniff_state {
    SILT_PROTOCOL_SNIFF_FIRST,
    SILT_PROTOCOL_SNIFF_HELLO,
    SILT_PROTOCOL_SNIFF_HEAD,
    SILT_PROTOCOL_SNIFF_BODY,
    SILT_PROTOCOL_SNIFF_TURN,
    SILT_PROTOCOL_SNIFF_FREE,
};

struct silt_protocol_sniff { /* zero-initialize */
    enum silt_protocol_sniff_state state;
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
enum silt_protocol_sniff_result silt_protocol_sniff_next(struct silt_protocol_sniff *i,
                                                         silt_slice bytes, size_t *ret_len);
/* In state TURN: what the server says, in the order it came. Afterwards, in another state, `next`
 * is to be asked again about what was held. */
void silt_protocol_sniff_hear(struct silt_protocol_sniff *i, silt_slice bytes);
