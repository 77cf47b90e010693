/* SPDX-License-Identifier: Apache-2.0 */
/* zygote: the protocol between silt-priv's zygote_parent and a zygote, a warm Python of one image,
 * on a seqpacket socket (descriptor 3 of the zygote). zygote_parent sends a birth; the zygote
 * answers when it is warm, then once per request. A zygote trusts zygote_parent and has no other
 * peer. Also included by interpreters/zygote.c, which uses no other header of ours. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

enum {
    SILT_ZYGOTE_FD = 3,
    SILT_ZYGOTE_FILTER_MAX = 2048, /* instructions */
    SILT_ZYGOTE_JOINS_MAX = 8,
    /* exit status of a child that could not enter the sandbox: plus the step, below 8 */
    SILT_ZYGOTE_LOST = 113,
};

/* What every child gets, the same as a command started by silt-init. */
struct silt_zygote_birth {
    uint64_t caps; /* those to keep */
    uint32_t filter_len;
    uint32_t reserved;
    struct sock_filter filter[SILT_ZYGOTE_FILTER_MAX];
};

/* Descriptors of a request, in this order. */
enum silt_zygote_fd {
    SILT_ZYGOTE_INIT,     /* pidfd of the sandbox's silt-init: the child enters its namespaces */
    SILT_ZYGOTE_REQUESTS, /* four pipes, as in SILT_PRIV_CONTEXT */
    SILT_ZYGOTE_OUT,
    SILT_ZYGOTE_ERR,
    SILT_ZYGOTE_LINES,
    /* first of: a directory for CLONE_INTO_CGROUP if `into`, then `joins` files `tasks` */
    SILT_ZYGOTE_GROUPS,
};

struct silt_zygote_ask {
    uint32_t into;
    uint32_t joins;
};

/* With error == 0 and pid != 0 the child's pidfd is attached. */
struct silt_zygote_answer {
    int32_t error; /* errno */
    int32_t pid;   /* in zygote_parent's pid namespace, whose child it is; 0: the zygote is warm */
};

/* A sandbox's own warm Python receives requests from its silt-init on a one-way socket: one byte
 * and these descriptors. The child becomes silt-init's child; it writes its pid (int32_t) to ANSWER
 * and waits for a byte from GATE, which means that it is in its group. Without that byte it
 * exits. */
enum silt_zygote_inside {
    SILT_INSIDE_REQUESTS,
    SILT_INSIDE_OUT,
    SILT_INSIDE_ERR,
    SILT_INSIDE_LINES,
    SILT_INSIDE_ANSWER,
    SILT_INSIDE_GATE,
    SILT_INSIDE_FDS,
};
enum { SILT_INSIDE_FD = 5 }; /* the socket, in the warm Python */
