/* SPDX-License-Identifier: Apache-2.0 */
/* super: what siltd and silt-super say to each other, and what each program is born with.
 *
 * silt-super starts siltd with:  3 = this channel (seqpacket), 4 = the listening socket, 5 = the token
 * file (read), 6 = siltd's end of the channel to silt-priv, 7 = shared memory (struct silt_super_pulse), 8 = the engine's listening socket, if there is one; and silt-priv with: 3 = its channel to
 * silt-super, 4 = its end of the channel to siltd, 5 = the gate, where there is one. After a restart of either, the survivor gets its end
 * of a new pair as a SILT_SUPER_PEER message. Where there is a gate, silt-proxy runs too, in two roles: `egress` gets
 * 3 = its channel to silt-super, 4 = the log of the gate (a netlink socket), 5.. = the gate's sockets (enum silt_super_socket), of IPv4 and, where there is IPv6, again;
 * `dial`, which lives in the gate, gets 3 alone. A third role, `preview` (argv[0] is `silt-preview`), always runs: 3 = its channel to silt-super, 4 = the
 * listening socket for previews, if there is one; where there is a certificate it comes as SILT_SUPER_CERTIFICATE. Their channels, to siltd and to each other, come as SILT_SUPER_PEER
 * messages, at births too.
 * silt-super keeps, for siltd, one channel and one pidfd per sandbox (`key` is siltd's slot number) and the
 * four descriptors of each of its contexts (`number` is the context's), and hands all of them to a new
 * siltd right after its start: KEPT messages, a sandbox's before those of its contexts, then KEPT_ALL.
 * It also makes, for siltd, listening sockets on loopback (LISTEN; `number` is siltd's own), and keeps them
 * in the same way: a siltd is told of each, by LISTENER, when it is made and when it is born. Connections whose
 * clients wait for an answer are kept like these. */
#pragma once

#include <stdint.h>

enum {
    SILT_SUPER_FD_CHANNEL = 3,
    SILT_SUPER_FD_LISTEN = 4,  /* siltd */
    SILT_SUPER_FD_TOKEN = 5,   /* siltd */
    SILT_SUPER_FD_PRIV = 6,    /* siltd */
    SILT_SUPER_FD_PULSE = 7,   /* siltd */
    SILT_SUPER_FD_ENGINE = 8,  /* siltd; not open: there is no engine socket */
    SILT_SUPER_FD_SILTD = 4,   /* silt-priv */
    SILT_SUPER_FD_NFLOG = 4,   /* silt-proxy, egress */
    SILT_SUPER_FD_PREVIEW = 4, /* silt-proxy, preview; not open: previews are off, direct access works all the same */
    SILT_SUPER_FD_GATEWAY = 5, /* silt-proxy: the first of the gate's sockets */
    SILT_SUPER_FD_GATE = 5,    /* silt-priv: the routing namespace; another thing or nothing: there is none */
};

/* What silt-proxy listens on, of each family, all on the gateway's address. The gate sends what comes from links in mode
 * allow, and nothing else, to those of its own: silt-proxy need not be told who is in that mode. */
enum silt_super_socket {
    SILT_SUPER_SOCKET_DNS_UDP,
    SILT_SUPER_SOCKET_DNS_TCP,
    SILT_SUPER_SOCKET_ALLOW_UDP, /* questions of names, mode allow */
    SILT_SUPER_SOCKET_ALLOW_TCP,
    SILT_SUPER_SOCKET_ALLOW, /* every TCP connection of a link in mode allow */
    SILT_SUPER_SOCKET_MAX
};

enum silt_super_message {
    SILT_SUPER_KEEP = 1, /* siltd -> super: key, descriptors {channel, pidfd}; with a number, after
                            that: {requests, output, errors, lines}, siltd's ends of four pipes */
    SILT_SUPER_DROP,     /* siltd -> super: key, and all its contexts; with a number: this one */
    SILT_SUPER_KEPT,     /* super -> siltd: as KEEP */
    SILT_SUPER_KEPT_ALL, /* super -> siltd */
    SILT_SUPER_PEER,     /* super -> all: a new channel to the other; key: enum silt_super_pair */
    SILT_SUPER_READY,    /* siltd -> super: serving */
    SILT_SUPER_CERTIFICATE, /* super -> silt-proxy, preview: two files, certificate and key, at its birth and when they have changed. It
                               answers with a struct silt_super_told */
    SILT_SUPER_LISTEN,   /* siltd -> super: number: make a listening socket on 127.0.0.1, on `port`; key: which question this is, not 0.
                            Answer: LISTENER with the same key. With a descriptor: keep that one in the same way, in place of
                            what is there; no answer */
    SILT_SUPER_UNLISTEN, /* siltd -> super: number: it goes */
    SILT_SUPER_LISTENER, /* super -> siltd: number, the socket; without it: it could not be made. key 0: it was kept */
    SILT_SUPER_MESSAGE_MAX
};

enum silt_super_pair {
    SILT_SUPER_PAIR_PRIV,   /* siltd and silt-priv: wire/priv.h */
    SILT_SUPER_PAIR_EGRESS, /* siltd and silt-proxy: wire/egress.h */
    SILT_SUPER_PAIR_DIAL,   /* silt-proxy and its dialer: wire/dial.h */
    SILT_SUPER_PAIR_PREVIEW, /* siltd and silt-proxy's role preview: wire/preview.h */
    SILT_SUPER_PAIR_MAX
};

struct silt_super_note {
    uint32_t type;
    uint32_t key;
    uint64_t number; /* of a context; 0: it is about the sandbox */
    uint32_t port;   /* LISTEN: one that an unprivileged process may have; 0: a free one */
    uint32_t unused;
};

/* Memory that siltd and silt-super share. siltd may write anything there: to silt-super a count only changes or
 * does not. */
struct silt_super_pulse {
    _Atomic uint64_t count; /* siltd's: one more each SILT_SUPER_PULSE_MS, while its loop turns */
    uint64_t aborts;        /* silt-super's, before siltd is born: how often one was ended for standing still */
};
enum { SILT_SUPER_PULSE_MS = 500 };

/* What became of a certificate. */
struct silt_super_told {
    uint32_t type; /* SILT_SUPER_CERTIFICATE */
    uint32_t used; /* 0: refused, the one before is still used */
    int64_t until_s;
    char text[256]; /* whom it is for; or why not */
};

enum { SILT_SUPER_CONTEXT_FDS = 4, SILT_SUPER_CONTEXTS_MAX = 64 }; /* per sandbox */
enum { SILT_SUPER_LISTENERS_MAX = 8192 };
