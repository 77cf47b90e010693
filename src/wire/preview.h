/* SPDX-License-Identifier: Apache-2.0 */
/* preview: the protocol between siltd and silt-proxy's role `preview` about services inside
 * sandboxes. One seqpacket channel; each end comes from silt-super (SILT_SUPER_PEER, key
 * SILT_SUPER_PAIR_PREVIEW) when both run, and again after a restart of either. One fixed struct is
 * one message.
 *
 * A client names a port by a text: the first label of the host, or parts of the path. silt-proxy
 * does not parse it further and knows no tokens: it sends FIND, once, and siltd answers with the
 * number of a route, or UNKNOWN. Both take the same time, and neither wakes a sandbox. Numbers are
 * never reused; that of an exposed port survives siltd. Then silt-proxy requests sockets for that
 * route (DIAL): siltd wakes the sandbox, waits for the port to open, and answers with a socket that
 * silt-priv connected inside. A FIND may request the first socket as well: after it has answered
 * with ROUTE, and only then, siltd acts as if a DIAL had followed.
 *
 * Requests left unanswered by a closed channel are repeated on the next one. A new siltd has
 * announced no routes: silt-proxy keeps those with connections and looks them up again before it
 * requests more sockets; siltd may drop them in the meantime. */
#pragma once

#include <stdint.h>

#define SILT_PREVIEW_PROOF_NAME                                                                    \
    "silt-proof" /* the parameter of a signed URL, and the cookie that stores it */

enum {
    SILT_PREVIEW_NAME = 320,      /* a text with its NUL */
    SILT_PREVIEW_PROOF = 128,     /* a signature with its NUL */
    SILT_PREVIEW_OPEN_MAX = 1024, /* pending requests of one silt-proxy; more are answered BUSY */
};

enum silt_preview_form {
    SILT_PREVIEW_HOST = 1, /* name: the first label, lower case [a-z0-9-], at most 63 bytes */
    SILT_PREVIEW_PATH,     /* name: "id/port/token" from the path, unescaped, no NUL */
    SILT_PREVIEW_FORM_MAX
};

/* silt-proxy -> siltd */
enum silt_preview_ask {
    SILT_PREVIEW_FIND = 1, /* body.find. Response: ROUTE, UNKNOWN, LOCKED or BUSY */
    /* route; body.dial. Response: SOCKET with one descriptor, UNKNOWN, CLOSED, ENDED or BUSY */
    SILT_PREVIEW_DIAL,
    /* serial of a DIAL, or of the one in a FIND, whose client has gone: a response is not needed,
     * but may come */
    SILT_PREVIEW_LEAVE,
    /* route; body.using: requests in progress, sent when it becomes 0 or stops being 0. The sandbox
     * does not sleep meanwhile */
    SILT_PREVIEW_USE,
    SILT_PREVIEW_DROPPED, /* route: nothing of it is open any more; the response to DROP */
    SILT_PREVIEW_ASK_MAX
};

struct silt_preview_find {
    uint8_t form;
    char name[SILT_PREVIEW_NAME];
    char proof[SILT_PREVIEW_PROOF]; /* from a signed URL or our cookie; "": none */
    uint32_t dial;    /* 0, or the serial of a DIAL of that route, different from the FIND's own */
    uint32_t wait_ms; /* of that DIAL */
};

struct silt_preview_dial {
    uint32_t wait_ms; /* how long the client waits for the port to open */
};

struct silt_preview_request {
    uint32_t type;   /* enum silt_preview_ask */
    uint32_t serial; /* returned in the response */
    uint64_t route;
    union {
        struct silt_preview_find find;
        struct silt_preview_dial dial;
        uint32_t using;
    } body;
};

/* siltd -> silt-proxy */
enum silt_preview_say {
    SILT_PREVIEW_ROUTE = 1, /* body.route */
    SILT_PREVIEW_UNKNOWN,   /* no such sandbox, port or token, or no longer */
    SILT_PREVIEW_LOCKED,    /* the port is private, and the proof is missing, wrong or expired */
    SILT_PREVIEW_SOCKET,    /* one descriptor: non-blocking, connected or connecting */
    SILT_PREVIEW_CLOSED,    /* no listener during the whole wait */
    SILT_PREVIEW_ENDED,     /* the sandbox cannot be started, or has ended; reason in body.text */
    SILT_PREVIEW_BUSY,      /* too many requests at once */
    /* unsolicited: the route is gone. Cut its connections, then send DROPPED, even if the route is
     * unknown */
    SILT_PREVIEW_DROP,
    /* unsolicited: a client admitted by siltd. Two descriptors: its connection, and a memfd with
     * the `bytes` bytes received so far, starting with the header of one request (rewritten by
     * siltd). Served by the route like any other, according to hand.flags, for one request only */
    SILT_PREVIEW_HAND,
    SILT_PREVIEW_SAY_MAX
};

#define SILT_LOGIN_COOKIE "silt-login" /* of siltd's own pages: never passed to the service */

enum {
    SILT_PREVIEW_LOCALHOST = 1, /* the service receives `Host: localhost:PORT` */
    /* of HAND: responses carry `Content-Security-Policy: sandbox` and nosniff, cookies pass in
     * neither direction. Always applies to access by path */
    SILT_PREVIEW_CAGED = 2,
    /* of HAND: the second descriptor is a socket inside; bytes pass both ways, with half-closes,
     * and are not HTTP */
    SILT_PREVIEW_TUNNEL = 8,
    /* the proof was needed: it is stored in our cookie until it expires */
    SILT_PREVIEW_PRIVATE = 4,
};

struct silt_preview_route {
    uint32_t flags;
    uint32_t sandbox; /* distinguishes sandboxes, for limits; not an id */
    uint16_t port;
    uint32_t lasts_s; /* PRIVATE: lifetime from now on, then FIND again; 0: until DROP */
};

struct silt_preview_hand {
    uint32_t flags;
    uint32_t sandbox;
    uint32_t bytes;
    uint16_t port;
};

struct silt_preview_answer {
    uint32_t type; /* enum silt_preview_say */
    uint32_t serial;
    uint64_t route;
    union {
        struct silt_preview_route route;
        struct silt_preview_hand hand;
        char text[160];
    } body;
};
