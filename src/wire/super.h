/* SPDX-License-Identifier: Apache-2.0 */
/* super: what siltd and silt-super say to each other, and what each program is born with.
 *
 * silt-super starts siltd with:  3 = this channel (seqpacket), 4 = the listening socket, 5 = the token
 * file (read), 6 = siltd's end of the channel to silt-priv; and silt-priv with: 3 = its channel to
 * silt-super, 4 = its end of the channel to siltd, 5 = the gate, where there is one. After a restart of either, the survivor gets its end
 * of a new pair as a SILT_SUPER_PEER message.
 * silt-super keeps, for siltd, one channel and one pidfd per sandbox (`key` is siltd's slot number) and the
 * three descriptors of each of its contexts (`number` is the context's), and hands all of them to a new
 * siltd right after its start: KEPT messages, a sandbox's before those of its contexts, then KEPT_ALL. */
#pragma once

#include <stdint.h>

enum {
    SILT_SUPER_FD_CHANNEL = 3,
    SILT_SUPER_FD_LISTEN = 4,  /* siltd */
    SILT_SUPER_FD_TOKEN = 5,   /* siltd */
    SILT_SUPER_FD_PRIV = 6,    /* siltd */
    SILT_SUPER_FD_SILTD = 4,   /* silt-priv */
    SILT_SUPER_FD_DNS = 4,     /* silt-proxy: UDP and TCP sockets of the gate, IPv4, then IPv6 */
    SILT_SUPER_FD_GATE = 5,    /* silt-priv: the routing namespace; another thing or nothing: there is none */
};

enum silt_super_message {
    SILT_SUPER_KEEP = 1, /* siltd -> super: key, descriptors {channel, pidfd}; with a number, after
                            that: {control, output, errors} */
    SILT_SUPER_DROP,     /* siltd -> super: key, and all its contexts; with a number: this one */
    SILT_SUPER_KEPT,     /* super -> siltd: as KEEP */
    SILT_SUPER_KEPT_ALL, /* super -> siltd */
    SILT_SUPER_PEER,     /* super -> siltd or silt-priv: a new channel to the other */
    SILT_SUPER_READY,    /* siltd -> super: serving */
    SILT_SUPER_MESSAGE_MAX
};

struct silt_super_note {
    uint32_t type;
    uint32_t key;
    uint64_t number; /* of a context; 0: it is about the sandbox */
};

enum { SILT_SUPER_CONTEXT_FDS = 3, SILT_SUPER_CONTEXTS_MAX = 64 }; /* per sandbox */
