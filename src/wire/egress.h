/* SPDX-License-Identifier: Apache-2.0 */
/* egress: the protocol between siltd and silt-proxy about outgoing traffic of sandboxes. One
 * seqpacket channel; each end comes from silt-super (SILT_SUPER_PEER, key SILT_SUPER_PAIR_EGRESS)
 * when both run, and again after a restart of either. One fixed struct is one message. A sandbox is
 * identified by the number of its link, which silt-priv reports (struct silt_priv_answer).
 *
 * A link in mode `allow` reaches nothing before its policy is set, so policy and mode may be set in
 * any order. silt-proxy learns from the gateway, not from siltd, which links are in that mode.
 *
 * A sandbox in mode captive has no link: its number is SILT_EGRESS_CAPTIVE plus its slot.
 * silt-proxy listens inside the sandbox, offers each connection to the program that listens at
 * 127.0.0.1:port, and follows its decision (engine-api: CONNECT). A certificate authority signs for
 * the servers that this program impersonates; several sandboxes, one after the other, may share an
 * authority.
 *
 * On a new channel siltd sends its authorities (AUTHORITY), SETs the policies of all sandboxes that
 * have one, and then sends SYNC: links it did not name are forgotten. Without siltd, silt-proxy
 * continues with what it has. */
#pragma once

#include <stdint.h>

enum {
    SILT_EGRESS_RULES_MAX = 2048,     /* twice the API's limit: a name without ports needs two */
    SILT_EGRESS_NAME = 254,           /* a name with its NUL */
    SILT_EGRESS_GLOBS_MAX = 64 << 10, /* bytes */
    SILT_EGRESS_PEM_MAX = 1024,       /* of a certificate, of a key */
};

#define SILT_EGRESS_CAPTIVE (UINT32_C(1) << 31)

/* What may be reached. Names are lower-case ASCII: labels of letters, digits, - and _, separated by
 * single dots, without a final dot (internationalized names in their xn-- form). */
enum silt_egress_kind {
    SILT_EGRESS_EXACT = 1, /* name: exactly this one */
    /* name "example.com" for the pattern *.example.com: every name below it, at any depth, but not
     * itself */
    SILT_EGRESS_BELOW,
    SILT_EGRESS_CIDR4, /* the first 4 bytes of address, and bits 0..32; all further bits are zero */
    SILT_EGRESS_CIDR6, /* address and bits 0..128 */
    SILT_EGRESS_ANY,   /* every name that resolves to a public address (pattern *) */
    SILT_EGRESS_KIND_MAX
};

struct silt_egress_rule {
    uint8_t kind;
    uint8_t bits;
    uint16_t low, high; /* TCP ports, 1..65535, low <= high */
    uint8_t address[16];
    char name[SILT_EGRESS_NAME]; /* zero-padded; "" for networks */
};

enum silt_egress_ask {
    /* body.set; one descriptor: a memfd with exactly `rules` structs, its offset is ignored. Takes
     * effect at once and as a whole; connections and pinned addresses that it forbids are cut.
     * Response: APPLIED, or REJECTED and the old policy stays */
    SILT_EGRESS_SET = 1,
    /* the sandbox has ended, or a new one starts with this link number: cuts connections, resets
     * counters. No response */
    SILT_EGRESS_DROP,
    /* its mode is now `public`: removes the policy, keeps connections. No response */
    SILT_EGRESS_LEAVE,
    /* its mode is now `none`: removes the policy and cuts connections. No response */
    SILT_EGRESS_CUT,
    SILT_EGRESS_COUNT, /* Response: COUNTS, for links in any mode */
    SILT_EGRESS_SYNC,  /* see above. No response */
    /* body.capture; descriptors: a memfd with the globs, then the sockets of SILT_PRIV_CAPTURE, or
     * none to keep the present ones. Takes effect at once and as a whole; connections stay.
     * Response: APPLIED, LISTENLESS or REJECTED. DROP ends it */
    SILT_EGRESS_CAPTURE,
    /* `authority`; with a descriptor, a memfd with a struct silt_egress_authority: uses that one,
     * unless the number exists. Without one, creates it if missing. Response: IS_AUTHORITY, or
     * REJECTED */
    SILT_EGRESS_AUTHORITY,
    SILT_EGRESS_UNTRUST, /* removes `authority`. No response */
    SILT_EGRESS_ASK_MAX
};

struct silt_egress_set {
    uint32_t rules;
    uint32_t connections; /* limit of concurrent connections; 0: only the gateway's limit */
};

struct silt_egress_capture {
    uint16_t port;    /* on 127.0.0.1; 0: not known yet */
    uint8_t internet; /* names that match no glob are resolved */
    uint8_t unused;
    /* bytes in the memfd: names to answer for, one per line, lower case; * matches anything */
    uint32_t globs_len;
    uint32_t uid; /* besides root, the user whose program may answer on `port` */
};

/* A certificate and its key, in PEM. */
struct silt_egress_authority {
    uint32_t certificate_len, key_len;
    char certificate[SILT_EGRESS_PEM_MAX], key[SILT_EGRESS_PEM_MAX];
};

/* siltd -> silt-proxy */
struct silt_egress_request {
    uint32_t type; /* enum silt_egress_ask */
    uint32_t link;
    uint64_t generation; /* SET, COUNT: chosen by siltd, returned in the response */
    uint64_t authority;  /* CAPTURE, AUTHORITY, UNTRUST: chosen by siltd */
    struct silt_egress_set set;
    struct silt_egress_capture capture;
};

enum silt_egress_say {
    SILT_EGRESS_APPLIED = 1,
    SILT_EGRESS_REJECTED, /* reason in body.text: an invalid policy, or no memory */
    SILT_EGRESS_COUNTS,   /* body.counts */
    /* body.refusal, unsolicited. Limited to a few per second and link; never waits for siltd */
    SILT_EGRESS_REFUSED,
    /* to a CAPTURE without sockets: it has none for that number. Nothing has changed */
    SILT_EGRESS_LISTENLESS,
    SILT_EGRESS_IS_AUTHORITY, /* body.authority */
    SILT_EGRESS_SAY_MAX
};

/* Since the link's number was last DROPped. A new silt-proxy starts at 0, with another `run`. */
struct silt_egress_counts {
    uint64_t run; /* distinguishes processes of silt-proxy */
    /* started: through silt-proxy, and in mode `public` those seen by the gateway */
    uint64_t connections;
    uint64_t open; /* currently open through silt-proxy */
    /* HTTP/1 requests, plus one per connection of any other protocol; through silt-proxy only */
    uint64_t requests;
    uint64_t questions;                  /* DNS queries */
    uint64_t refused;                    /* in all modes, including those not reported one by one */
    uint64_t sent_bytes, received_bytes; /* by the sandbox, through silt-proxy */
};

enum silt_egress_reason {
    /* the mode does not carry this kind of traffic: everything in none; all but TCP and DNS in
     * allow; all but TCP, UDP and ping in public */
    SILT_REFUSED_MODE = 1,
    /* an address of the machine, of a private or special network, or of another sandbox */
    SILT_REFUSED_CLOSED,
    SILT_REFUSED_NAME,     /* no rule has this name */
    SILT_REFUSED_PORT,     /* a rule has this name, for other ports */
    SILT_REFUSED_ADDRESS,  /* no rule has this address, and no allowed name resolved to it */
    SILT_REFUSED_MISMATCH, /* an allowed name (SNI, Host) that does not resolve to this address */
    SILT_REFUSED_NAMELESS, /* TLS without SNI, HTTP without a usable Host */
    SILT_REFUSED_SECOND,   /* a later request on the connection is for another host */
    /* the destination cannot be determined: cleartext HTTP/2, a malformed ClientHello, an upgrade
     * other than WebSocket, CONNECT */
    SILT_REFUSED_PROTOCOL,
    /* a name resolved to a closed address, which was removed from the response */
    SILT_REFUSED_ANSWER,
    SILT_REFUSED_LIMIT,     /* too many connections */
    SILT_REFUSED_NO_POLICY, /* mode allow, and its policy has not arrived (again) yet */
    SILT_REFUSED_SILENCE,   /* the client sent too little to decide before the timeout */
    SILT_REFUSED_BY_OTHER,  /* mode captive: by the program it was offered to */
    /* mode captive: no program to offer it to, or the program's response is not understood */
    SILT_REFUSED_NOBODY,
    SILT_REFUSED_REASON_MAX
};

enum silt_egress_protocol {
    SILT_EGRESS_TCP = 1,
    SILT_EGRESS_UDP,
    SILT_EGRESS_ICMP, /* IPv4 or IPv6 */
    /* a query; address and port are zero, except for reason ANSWER: the removed address */
    SILT_EGRESS_DNS,
    SILT_EGRESS_PROTOCOL_MAX
};

struct silt_egress_refusal {
    int64_t wall_ms;
    uint32_t lost; /* refusals of this link dropped since the last one reported */
    uint8_t protocol, reason;
    uint8_t family; /* 4, 6; 0: no address */
    uint8_t unused;
    uint16_t port; /* 0: none */
    uint8_t address[16];
    char name[SILT_EGRESS_NAME]; /* printable ASCII, lower case; "": unknown */
};

/* silt-proxy -> siltd */
struct silt_egress_note {
    uint32_t type; /* enum silt_egress_say */
    uint32_t link;
    uint64_t generation;
    union {
        struct silt_egress_counts counts;
        struct silt_egress_refusal refusal;
        struct silt_egress_authority authority;
        char text[128];
    } body;
};
