/* SPDX-License-Identifier: Apache-2.0 */
/* egress: what siltd and silt-proxy say to each other about the sandboxes' way out. One seqpacket
 * channel; each gets its end from silt-super (SILT_SUPER_PEER, key SILT_SUPER_PAIR_EGRESS) when both run, and
 * a new one after a restart of either. One fixed struct is one message. Sandboxes are told apart by the number of their link,
 * which silt-priv tells (struct silt_priv_answer).
 *
 * A link that is in mode `allow` reaches nothing before its policy is set: policy and mode may be put in any
 * order. silt-proxy knows from the gate, and not from siltd, which links are in that mode.
 *
 * A sandbox in mode captive has no link: its number is SILT_EGRESS_CAPTIVE and its slot. silt-proxy listens inside, offers each connection to
 * the program that listens at 127.0.0.1:port, and does what that says (engine-api: CONNECT). Its authority signs for the servers that
 * this program wants to be taken for; several sandboxes, one after the other, may have the same one.
 *
 * On a new channel siltd GIVEs the authorities it has, SETs the policies of all sandboxes that have one, then says SYNC: links that it did
 * not name are forgotten. Without siltd the proxy goes on with what it has. */
#pragma once

#include <stdint.h>

enum {
    SILT_EGRESS_RULES_MAX = 2048, /* twice those of the API: a name without ports is two */
    SILT_EGRESS_NAME = 254, /* a name with its terminator */
    SILT_EGRESS_GLOBS_MAX = 64 << 10, /* bytes */
    SILT_EGRESS_PEM_MAX = 1024, /* of a certificate, of a key */
};

#define SILT_EGRESS_CAPTIVE (UINT32_C(1) << 31)

/* What may be reached. Names: lower case ASCII, labels of letters, digits, - and _ with single dots between them, no dot at the end
 * (an internationalized name in its xn-- form). */
enum silt_egress_kind {
    SILT_EGRESS_EXACT = 1, /* name: this one */
    SILT_EGRESS_BELOW,     /* name "example.com" of a pattern *.example.com: every name below, at any depth, not itself */
    SILT_EGRESS_CIDR4,     /* address, its first 4 bytes, and bits 0..32; no bit is set behind them */
    SILT_EGRESS_CIDR6,     /* address and bits 0..128 */
    SILT_EGRESS_ANY,       /* every name that answers with an address of the internet (pattern *) */
    SILT_EGRESS_KIND_MAX
};

struct silt_egress_rule {
    uint8_t kind;
    uint8_t bits;
    uint16_t low, high; /* TCP ports, 1..65535, low <= high */
    uint8_t address[16];
    char name[SILT_EGRESS_NAME]; /* zeros behind its end; "" for networks */
};

enum silt_egress_ask {
    SILT_EGRESS_SET = 1, /* body.set; one descriptor: a memory file (memfd) with exactly `rules` structs, position is not
                            looked at. In force at once and as a whole; connections and pinned answers that it
                            forbids are cut. Answer: APPLIED, or REJECTED and the old one stays */
    SILT_EGRESS_DROP,    /* the sandbox has ended, or begins with this link's number: connections are cut, counters
                            begin at 0. No answer */
    SILT_EGRESS_LEAVE,   /* its mode is `public` now: the policy goes, connections stay. No answer */
    SILT_EGRESS_CUT,     /* its mode is `none` now: the policy goes, connections too. No answer */
    SILT_EGRESS_COUNT,   /* Answer: COUNTS, also of a link in another mode */
    SILT_EGRESS_SYNC,    /* see above. No answer */
    SILT_EGRESS_CAPTURE, /* body.capture; descriptors: a memory file with the globs, then the sockets of SILT_PRIV_CAPTURE, or none: those
                            it has. In force at once and as a whole; connections stay. Answer: APPLIED, LISTENLESS
                            or REJECTED. DROP ends it */
    SILT_EGRESS_AUTHORITY, /* `authority`; with a descriptor, a memory file with a struct silt_egress_authority: that one, unless there
                            is one of this number. Made when there is none. Answer: IS_AUTHORITY, or REJECTED */
    SILT_EGRESS_UNTRUST, /* `authority` goes. No answer */
    SILT_EGRESS_ASK_MAX
};

struct silt_egress_set {
    uint32_t rules;
    uint32_t connections; /* most at a time; 0: no limit but that of the gate */
};

struct silt_egress_capture {
    uint16_t port;       /* on 127.0.0.1; 0: not known yet */
    uint8_t internet;    /* names that no glob has are asked for */
    uint8_t unused;
    uint32_t globs_len;  /* of what is in the memory file: names that are answered for, one a line, lower case; * is anything */
    uint32_t uid;        /* beside root: whose program may answer on `port` */
};

/* A certificate and its key, in PEM. */
struct silt_egress_authority {
    uint32_t certificate_len, key_len;
    char certificate[SILT_EGRESS_PEM_MAX], key[SILT_EGRESS_PEM_MAX];
};

/* siltd -> silt-proxy */
struct silt_egress_request {
    uint32_t type;       /* enum silt_egress_ask */
    uint32_t link;
    uint64_t generation; /* SET, COUNT: comes back in the answer; siltd's choice */
    uint64_t authority;  /* CAPTURE, AUTHORITY, UNTRUST: its number, siltd's choice */
    struct silt_egress_set set;
    struct silt_egress_capture capture;
};

enum silt_egress_say {
    SILT_EGRESS_APPLIED = 1,
    SILT_EGRESS_REJECTED, /* reason in body.text: not a policy, or no memory for it */
    SILT_EGRESS_COUNTS,   /* body.counts */
    SILT_EGRESS_REFUSED,  /* body.refusal, unasked. At most some a second of each link; never waits for siltd */
    SILT_EGRESS_LISTENLESS, /* to a CAPTURE without sockets: it has none of that number. Nothing has changed */
    SILT_EGRESS_IS_AUTHORITY, /* body.authority */
    SILT_EGRESS_SAY_MAX
};

/* Since the link's number was last DROPped. A new silt-proxy begins at 0, with another `run`. */
struct silt_egress_counts {
    uint64_t run;         /* tells one life of silt-proxy from the next */
    uint64_t connections; /* begun: through us, and in mode `public` those that the gate has seen */
    uint64_t open;        /* of those through us, now */
    uint64_t requests;    /* of HTTP/1, one for each connection of anything else; through us only */
    uint64_t questions;   /* of names */
    uint64_t refused;     /* in all modes, also those that were not told one by one */
    uint64_t sent_bytes, received_bytes; /* by the sandbox, through us */
};

enum silt_egress_reason {
    SILT_REFUSED_MODE = 1, /* the mode carries nothing of this kind: anything in none; what is neither TCP nor a question
                              of names in allow; in public what is neither TCP nor UDP nor a ping */
    SILT_REFUSED_CLOSED,   /* an address of the machine, of a private or special network, of a neighbour */
    SILT_REFUSED_NAME,     /* no rule names it */
    SILT_REFUSED_PORT,     /* a rule names it, for other ports */
    SILT_REFUSED_ADDRESS,  /* an address that no rule names and that no allowed name was answered with */
    SILT_REFUSED_MISMATCH, /* an allowed name (SNI, Host) that this address does not belong to */
    SILT_REFUSED_NAMELESS, /* TLS without SNI, HTTP without a usable Host */
    SILT_REFUSED_SECOND,   /* a later request on the connection is for another host */
    SILT_REFUSED_PROTOCOL, /* nobody can tell to whom it talks: HTTP/2 in the clear, a broken hello, upgrades but to a WebSocket, CONNECT */
    SILT_REFUSED_ANSWER,   /* a name's answer with a closed address: taken out of the answer */
    SILT_REFUSED_LIMIT,    /* too many connections */
    SILT_REFUSED_NO_POLICY,/* mode allow, and its policy has not arrived (again) yet */
    SILT_REFUSED_SILENCE,  /* said too little too late for us to tell */
    SILT_REFUSED_BY_OTHER, /* mode captive: by whoever it was offered to */
    SILT_REFUSED_NOBODY,   /* mode captive: nobody is there to offer it to, or nobody understands what is said there */
    SILT_REFUSED_REASON_MAX
};

enum silt_egress_protocol {
    SILT_EGRESS_TCP = 1,
    SILT_EGRESS_UDP,
    SILT_EGRESS_ICMP, /* of either family */
    SILT_EGRESS_DNS,  /* a question; address and port are zeros, but for reason ANSWER: the address taken out */
    SILT_EGRESS_PROTOCOL_MAX
};

struct silt_egress_refusal {
    int64_t wall_ms;
    uint32_t lost; /* of this link since the last that was told */
    uint8_t protocol, reason;
    uint8_t family; /* 4, 6; 0: there is no address */
    uint8_t unused;
    uint16_t port;  /* 0: none */
    uint8_t address[16];
    char name[SILT_EGRESS_NAME]; /* printable ASCII, lower case; "": not known */
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
