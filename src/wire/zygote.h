/* SPDX-License-Identifier: Apache-2.0 */
/* zygote: what silt-priv's nursery and a zygote, a warm Python of one image, say to each other on a
 * seqpacket socket (number 3 of the zygote). The nursery sends BIRTH; the zygote answers when it is warm;
 * then one answer for each ask. A zygote takes what the nursery says for the truth, and hears nobody else.
 * Also read by interpreters/zygote.c, which has nothing of ours but this. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

enum {
    SILT_ZYGOTE_FD = 3,
    SILT_ZYGOTE_FILTER_MAX = 2048, /* instructions */
    SILT_ZYGOTE_JOINS_MAX = 8,
    SILT_ZYGOTE_LOST = 113, /* exit status of a child that could not enter: plus the step, below 8 */
};

/* What every child gets, exactly as a command that silt-init starts. */
struct silt_zygote_birth {
    uint64_t caps; /* that remain */
    uint32_t filter_len;
    uint32_t reserved;
    struct sock_filter filter[SILT_ZYGOTE_FILTER_MAX];
};

/* Descriptors, in this order. */
enum silt_zygote_fd {
    SILT_ZYGOTE_INIT, /* pidfd of the sandbox's silt-init: whose namespaces the child enters */
    SILT_ZYGOTE_REQUESTS, /* four pipes, as in SILT_PRIV_CONTEXT */
    SILT_ZYGOTE_OUT,
    SILT_ZYGOTE_ERR,
    SILT_ZYGOTE_LINES,
    SILT_ZYGOTE_GROUPS, /* first of: with `into` a folder for CLONE_INTO_CGROUP, then `joins` files `tasks` */
};

struct silt_zygote_ask {
    uint32_t into;
    uint32_t joins;
};

/* With error == 0 and pid != 0 the child's pidfd rides along. */
struct silt_zygote_answer {
    int32_t error; /* errno */
    int32_t pid;   /* as the nursery numbers it, whose child it is; 0: the zygote is warm */
};
