/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_parent: the process of silt-priv that keeps warm Pythons (priv/zygote_pool.h), one per
 * trusted image, and is the parent of every context forked from them. It reaps contexts at once,
 * because a zombie would keep its sandbox from ending, and remembers their exit status. When it
 * dies, its contexts are reparented to silt-super; its successor does not know them. */
#pragma once

#include "priv/zygote_pool.h"

enum silt_zygote_parent_type {
    /* descriptors: see wire/zygote.h. SILT_UNAVAILABLE: no warm Python */
    SILT_ZYGOTE_PARENT_FORK = 1,
    SILT_ZYGOTE_PARENT_REAP,
};

struct silt_zygote_parent_ask {
    uint32_t type;
    uint32_t slot;
    uint64_t number; /* of the context */
    uint8_t digest[SILT_DIGEST_SIZE];
    uint32_t handle; /* FORK: number of its group, returned by REAP */
    struct silt_zygote_ask zygote;
};

struct silt_zygote_parent_answer {
    uint32_t ok;
    uint32_t known; /* REAP */
    int32_t pid;    /* FORK: pid inside the sandbox */
    int32_t status; /* REAP */
    uint32_t handle;
    struct silt_error error; /* if ok == 0 */
};

/* Called in a worker. *ret_pidfd (FORK) is owned by the caller. */
int silt_zygote_parent_ask(int channel, const struct silt_zygote_parent_ask *ask, const int *fds,
                           int nfds, struct silt_zygote_parent_answer *ret, int *ret_pidfd,
                           struct silt_error *e);

/* The process's main loop: returns when the last peer of the channel is gone. */
int silt_zygote_parent_run(int channel, const struct silt_zygote_parent_place *place,
                           struct silt_error *e);
