/* SPDX-License-Identifier: Apache-2.0 */
/* nursery: the process of silt-priv that keeps warm Pythons (priv/brood.h), one per trusted image, and
 * is the parent of every context that is forked from them: it reaps them at once, because a dead process
 * that nobody reaps keeps its sandbox from ending, and remembers how they ended. When it dies, its contexts
 * live on as silt-super's; its successor knows nothing of them. */
#pragma once

#include "priv/brood.h"

enum silt_nursery_type {
    SILT_NURSERY_FORK = 1, /* descriptors: as in wire/zygote.h. SILT_UNAVAILABLE: there is no warm one */
    SILT_NURSERY_REAP,
};

struct silt_nursery_ask {
    uint32_t type;
    uint32_t slot;
    uint64_t number; /* of the context */
    uint8_t digest[SILT_DIGEST_SIZE];
    uint32_t handle; /* FORK: number of its group, told again by REAP */
    struct silt_zygote_ask zygote;
};

struct silt_nursery_answer {
    uint32_t ok;
    uint32_t known; /* REAP */
    int32_t pid;    /* FORK: inside */
    int32_t status; /* REAP */
    uint32_t handle;
    struct silt_error error; /* ok == 0 */
};

/* In a worker. *ret_pidfd (FORK) is the caller's. */
int silt_nursery_ask(int channel, const struct silt_nursery_ask *ask, const int *fds, int nfds,
                     struct silt_nursery_answer *ret, int *ret_pidfd, struct silt_error *e);

/* The nursery itself: returns when the last peer of the channel is gone. */
int silt_nursery_run(int channel, const struct silt_nursery_place *place, struct silt_error *e);
