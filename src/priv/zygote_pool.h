/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_pool: zygote_parent's warm Pythons, one per trusted image: when each is started, replaced
 * and ended. */
#pragma once

#include "base/fd.h"
#include "engine/core/seccomp.h"
#include "wire/priv.h"
#include "wire/zygote.h"

#include <poll.h>
#include <stdbool.h>

enum {
    SILT_ZYGOTE_POOL_MAX = 16,
    /* one more, for the replacement of one that is still in use */
    SILT_ZYGOTE_POOL_PLACES = SILT_ZYGOTE_POOL_MAX + 1,
};

/* borrowed */
struct silt_zygote_parent_place {
    int images;
    const struct silt_seccomp *seccomp;
    uint32_t zygotes; /* limit */
    uint32_t renew;   /* replace after this many forks */
};

/*   NONE --start--> WARMING --reports ready--> WARM --ended, evicted or replaced--> NONE
 *                        \--ended, or timeout--> BROKEN --after a while--> NONE */
enum silt_zygote_state {
    SILT_ZYGOTE_NONE,
    SILT_ZYGOTE_WARMING,
    SILT_ZYGOTE_WARM,
    SILT_ZYGOTE_BROKEN
};

struct silt_zygote {
    enum silt_zygote_state state;
    uint8_t digest[SILT_DIGEST_SIZE];
    pid_t pid;
    int control;
    int64_t since_ms; /* when the state was entered */
    int64_t used_ms;
    uint32_t forks;
};

struct silt_zygote_pool {
    const struct silt_zygote_parent_place *place;
    uint32_t wanted;
    struct silt_zygote items[SILT_ZYGOTE_POOL_PLACES];
    struct silt_zygote_birth birth;
    int watch; /* inotify: newly trusted images */
};

int silt_zygote_pool_open(struct silt_zygote_pool *b, const struct silt_zygote_parent_place *place,
                          struct silt_error *e);
void silt_zygote_pool_close(struct silt_zygote_pool *b);
/* The warm Python of this image, or NULL: then it is started, if allowed. */
struct silt_zygote *silt_zygote_pool_get(struct silt_zygote_pool *b,
                                         const uint8_t digest[SILT_DIGEST_SIZE]);
/* For a Python that does not answer, or answers nonsense. */
void silt_zygote_end(struct silt_zygote *z, enum silt_zygote_state next);
/* Fills in what to poll: SILT_ZYGOTE_POOL_PLACES + 1 entries. */
void silt_zygote_pool_watch(const struct silt_zygote_pool *b, struct pollfd *ret);
void silt_zygote_pool_on_ready(struct silt_zygote_pool *b, const struct pollfd *ready);
/* True: the process was one of the pool's. */
bool silt_zygote_pool_on_died(struct silt_zygote_pool *b, pid_t pid, int status);
