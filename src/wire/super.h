/* SPDX-License-Identifier: Apache-2.0 */
/* super: the protocol between silt-super and its programs, and the descriptors each program starts
 * with.
 *
 *   siltd                3 = this channel (seqpacket), 4 = the listening socket,
 *                        5 = the token file (read), 6 = its end of the channel to silt-priv,
 *                        7 = shared memory (struct silt_super_pulse),
 *                        8 = the engine's listening socket, if any
 *   silt-priv            3 = its channel to silt-super, 4 = its end of the channel to siltd,
 *                        5 = the gateway, if any
 *   silt-proxy, egress   3 = its channel to silt-super, 4 = the gateway's log (netlink),
 *                        5.. = the gateway's sockets (enum silt_super_socket), IPv4 and then,
 *                        if available, IPv6. Runs only with a gateway
 *   silt-proxy, dial     3 = its channel to silt-super. Runs only with a gateway, inside it
 *   silt-proxy, preview  3 = its channel to silt-super, 4 = the listening socket of previews,
 *                        if any. argv[0] is `silt-preview`; always runs. A certificate, if
 *                        any, comes as SILT_SUPER_CERTIFICATE
 *
 * After a restart of siltd or silt-priv, the other one gets its end of a new pair as a
 * SILT_SUPER_PEER message. The channels of silt-proxy's roles, to siltd and to each other, always
 * come as SILT_SUPER_PEER messages, also at start.
 *
 * silt-super stores for siltd one channel and one pidfd per sandbox (`key` is siltd's slot number)
 * and the four descriptors of each of its contexts (`number` is the context's). It sends all of
 * them to a new siltd right after its start: KEPT messages, a sandbox's before those of its
 * contexts, then KEPT_ALL. It also opens listening sockets on loopback for siltd (LISTEN; siltd
 * chooses `number`) and stores them in the same way: it reports each by LISTENER, when it is opened
 * and to every new siltd. Connections whose clients wait for a response are stored like these. */
#pragma once

#include <stdint.h>

enum {
    SILT_SUPER_FD_CHANNEL = 3,
    SILT_SUPER_FD_LISTEN = 4, /* siltd */
    SILT_SUPER_FD_TOKEN = 5,  /* siltd */
    SILT_SUPER_FD_PRIV = 6,   /* siltd */
    SILT_SUPER_FD_PULSE = 7,  /* siltd */
    SILT_SUPER_FD_ENGINE = 8, /* siltd; closed: no engine socket */
    SILT_SUPER_FD_SILTD = 4,  /* silt-priv */
    SILT_SUPER_FD_NFLOG = 4,  /* silt-proxy, egress */
    /* silt-proxy, preview; closed: no preview listener, direct access still works */
    SILT_SUPER_FD_PREVIEW = 4,
    SILT_SUPER_FD_GATEWAY = 5, /* silt-proxy: first of the gateway's sockets */
    /* silt-priv: the gateway's network namespace; anything else: no gateway */
    SILT_SUPER_FD_GATE = 5,
};

/* silt-proxy's listening sockets, per address family, all on the gateway's address. The gateway
 * sends traffic of links in mode allow, and nothing else, to their own sockets, so silt-proxy need
 * not be told which links are in that mode. */
enum silt_super_socket {
    SILT_SUPER_SOCKET_DNS_UDP,
    SILT_SUPER_SOCKET_DNS_TCP,
    SILT_SUPER_SOCKET_ALLOW_UDP, /* DNS queries, mode allow */
    SILT_SUPER_SOCKET_ALLOW_TCP,
    SILT_SUPER_SOCKET_ALLOW, /* all TCP connections of links in mode allow */
    SILT_SUPER_SOCKET_MAX
};

enum silt_super_message {
    /* siltd -> super: key, descriptors {channel, pidfd}; later, with a number: {requests, output,
     * errors, lines}, siltd's ends of four pipes */
    SILT_SUPER_KEEP = 1,
    /* siltd -> super: removes key and all its contexts; with a number: this context only */
    SILT_SUPER_DROP,
    SILT_SUPER_KEPT,     /* super -> siltd: like KEEP */
    SILT_SUPER_KEPT_ALL, /* super -> siltd */
    SILT_SUPER_PEER,     /* super -> all: a new channel to a peer; key: enum silt_super_pair */
    SILT_SUPER_READY,    /* siltd -> super: serving requests */
    /* super -> silt-proxy, preview: two files, certificate and key, at start and when they change.
     * The response is a struct silt_super_told */
    SILT_SUPER_CERTIFICATE,
    /* siltd -> super: open the listening socket `number` on 127.0.0.1:`port`; key: request number,
     * not 0. Response: LISTENER with the same key. With a descriptor: store that one instead,
     * replacing the present one; no response */
    SILT_SUPER_LISTEN,
    SILT_SUPER_UNLISTEN, /* siltd -> super: close `number` */
    /* super -> siltd: number and the socket; without a socket: it could not be opened. key 0: it
     * was stored before */
    SILT_SUPER_LISTENER,
    SILT_SUPER_MESSAGE_MAX
};

enum silt_super_pair {
    SILT_SUPER_PAIR_PRIV,    /* siltd and silt-priv: wire/priv.h */
    SILT_SUPER_PAIR_EGRESS,  /* siltd and silt-proxy: wire/egress.h */
    SILT_SUPER_PAIR_DIAL,    /* silt-proxy and its dialer: wire/dial.h */
    SILT_SUPER_PAIR_PREVIEW, /* siltd and silt-proxy's role preview: wire/preview.h */
    SILT_SUPER_PAIR_MAX
};

struct silt_super_note {
    uint32_t type;
    uint32_t key;
    uint64_t number; /* of a context; 0: the message is about the sandbox */
    uint32_t port;   /* LISTEN: an unprivileged port; 0: any free one */
    uint32_t unused;
};

/* Memory shared by siltd and silt-super. siltd may write anything there: silt-super only checks
 * whether the count changes. */
struct silt_super_pulse {
    _Atomic uint64_t count; /* incremented by siltd every SILT_SUPER_PULSE_MS while its loop runs */
    /* written by silt-super before siltd starts: how many were aborted for a stuck loop */
    uint64_t aborts;
};
enum { SILT_SUPER_PULSE_MS = 500 };

/* Result of loading a certificate. */
struct silt_super_told {
    uint32_t type; /* SILT_SUPER_CERTIFICATE */
    uint32_t used; /* 0: refused, the previous one stays in use */
    int64_t until_s;
    char text[256]; /* the names it is valid for; or why it was refused */
};

enum { SILT_SUPER_CONTEXT_FDS = 4, SILT_SUPER_CONTEXTS_MAX = 64 }; /* per sandbox */
enum { SILT_SUPER_LISTENERS_MAX = 8192 };
