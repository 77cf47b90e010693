/* SPDX-License-Identifier: Apache-2.0 */
/* preview: what siltd and silt-proxy's role `preview` say to each other about services inside sandboxes. One seqpacket
 * channel; each gets its end from silt-super (SILT_SUPER_PEER, key SILT_SUPER_PAIR_PREVIEW) when both run, and a new one
 * after a restart of either. One fixed struct is one message.
 *
 * A visitor names a port by a text (the first label of the host, or the parts of a path). silt-proxy takes it apart no further and knows
 * no token: it asks with FIND, once, and siltd answers with the number of a route, or UNKNOWN. Both take the same time, and
 * neither wakes anything. Numbers are never given twice; that of an exposed port outlives siltd. From then on silt-proxy asks for sockets of that route (DIAL): siltd wakes the sandbox, waits for
 * the port to open, and answers with a socket that silt-priv connected inside.
 *
 * Asks that a dying channel left unanswered are asked again on the next one. A new siltd has told of no routes: silt-proxy keeps
 * those with connections, and finds them again before it asks for more sockets; it may be told to drop them meanwhile. */
#pragma once

#include <stdint.h>

#define SILT_PREVIEW_PROOF_NAME "silt-proof" /* the parameter of a signed URL, and the cookie that keeps it */

enum {
    SILT_PREVIEW_NAME = 320, /* a text with its terminator */
    SILT_PREVIEW_PROOF = 128, /* a signature with its terminator */
    SILT_PREVIEW_OPEN_MAX = 1024, /* asks of one silt-proxy that may wait for their answers; more are BUSY */
};

enum silt_preview_form {
    SILT_PREVIEW_HOST = 1, /* name: the first label, lower case [a-z0-9-], at most 63 bytes */
    SILT_PREVIEW_PATH,     /* name: "id/port/token" as it stood in the path, escapes undone, no NUL */
    SILT_PREVIEW_FORM_MAX
};

/* silt-proxy -> siltd */
enum silt_preview_ask {
    SILT_PREVIEW_FIND = 1, /* body.find. Answer: ROUTE, UNKNOWN, LOCKED or BUSY */
    SILT_PREVIEW_DIAL,     /* route; body.dial. Answer: SOCKET with one descriptor, UNKNOWN, CLOSED, ENDED or BUSY */
    SILT_PREVIEW_LEAVE,    /* serial of a DIAL whose visitor has gone: no answer is needed any more, one may come */
    SILT_PREVIEW_USE,      /* route; body.using: requests under way, told when it becomes 0 or ceases to be 0. The sandbox does not fall asleep meanwhile */
    SILT_PREVIEW_DROPPED,  /* route: nothing of it is open here any more; the answer to DROP */
    SILT_PREVIEW_ASK_MAX
};

struct silt_preview_find {
    uint8_t form;
    char name[SILT_PREVIEW_NAME];
    char proof[SILT_PREVIEW_PROOF]; /* of a signed URL or of our cookie; "": none */
};

struct silt_preview_dial {
    uint32_t wait_ms; /* how long the visitor waits for the port to open */
};

struct silt_preview_request {
    uint32_t type;   /* enum silt_preview_ask */
    uint32_t serial; /* comes back in the answer */
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
    SILT_PREVIEW_UNKNOWN,   /* no such sandbox, port or token, or not any more */
    SILT_PREVIEW_LOCKED,    /* the port is private, and the proof is missing, wrong or too old */
    SILT_PREVIEW_SOCKET,    /* one descriptor: non-blocking, connected or about to be */
    SILT_PREVIEW_CLOSED,    /* nobody listens on it, all the time that the visitor waits */
    SILT_PREVIEW_ENDED,     /* the sandbox cannot be started, or ended meanwhile; body.text says why */
    SILT_PREVIEW_BUSY,      /* too many ask at once */
    SILT_PREVIEW_DROP,      /* unasked: route is no more. Its connections are cut, then DROPPED is said; also when it is not known */
    SILT_PREVIEW_HAND,      /* unasked: a visitor that siltd let in, two descriptors: its connection, and a memory file (memfd) of `bytes`
                               bytes that it said up to now, beginning with the head of one request (which siltd has written anew). Served by
                               route as if it had come here, as hand.flags say, one request only */
    SILT_PREVIEW_SAY_MAX
};

#define SILT_LOGIN_COOKIE "silt-login" /* of siltd's own pages: never the service's */

enum {
    SILT_PREVIEW_LOCALHOST = 1, /* the service is told `Host: localhost:PORT` */
    SILT_PREVIEW_CAGED = 2,     /* of HAND: answers carry `Content-Security-Policy: sandbox` and nosniff, cookies pass in neither direction.
                                   Whoever comes by a path is treated so without being told */
    SILT_PREVIEW_TUNNEL = 8,    /* of HAND: the second descriptor is a socket inside; bytes pass both ways, half-closes too, nothing is HTTP */
    SILT_PREVIEW_PRIVATE = 4,   /* the proof was needed: it is kept in our cookie until it is too old */
};

struct silt_preview_route {
    uint32_t flags;
    uint32_t sandbox;    /* tells sandboxes apart, for limits; not an id */
    uint16_t port;
    uint32_t lasts_s;    /* PRIVATE: from now on, then it is to be found again; 0: until DROP */
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
