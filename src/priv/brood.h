/* SPDX-License-Identifier: Apache-2.0 */
/* brood: the nursery's warm Pythons, one per trusted image, and when each begins and ends. */
#pragma once

#include "base/fd.h"
#include "engine/seccomp.h"
#include "wire/priv.h"
#include "wire/zygote.h"

#include <poll.h>
#include <stdbool.h>

enum {
    SILT_BROOD_MAX = 16,
    SILT_BROOD_PLACES = SILT_BROOD_MAX + 1, /* one more, for the successor of one that is still in use */
};

struct silt_nursery_place { /* borrowed */
    int images;
    const struct silt_seccomp *seccomp;
    uint32_t zygotes; /* at most */
    uint32_t renew;   /* after so many forks */
};

/*   NONE --start--> WARMING --it says so--> WARM --its end, a better use for its place, a successor--> NONE
 *                        \--its end, or too late--> BROKEN --a while--> NONE  */
enum silt_zygote_state { SILT_ZYGOTE_NONE, SILT_ZYGOTE_WARMING, SILT_ZYGOTE_WARM, SILT_ZYGOTE_BROKEN };

struct silt_zygote {
    enum silt_zygote_state state;
    uint8_t digest[SILT_DIGEST_SIZE];
    pid_t pid;
    int control;
    int64_t since_ms; /* of the state */
    int64_t used_ms;
    uint32_t forks;
};

struct silt_brood {
    const struct silt_nursery_place *place;
    uint32_t wanted;
    struct silt_zygote items[SILT_BROOD_PLACES];
    struct silt_zygote_birth birth;
    int watch; /* inotify: images that are trusted from now on */
};

int silt_brood_open(struct silt_brood *b, const struct silt_nursery_place *place, struct silt_error *e);
void silt_brood_close(struct silt_brood *b);
/* The warm one of this image, or NULL: it is started then, if it may be. */
struct silt_zygote *silt_brood_get(struct silt_brood *b, const uint8_t digest[SILT_DIGEST_SIZE]);
/* One that does not answer, or not as it should. */
void silt_zygote_end(struct silt_zygote *z, enum silt_zygote_state next);
/* What to wait for: SILT_BROOD_PLACES + 1 of them. */
void silt_brood_watch(const struct silt_brood *b, struct pollfd *ret);
void silt_brood_on_ready(struct silt_brood *b, const struct pollfd *ready);
/* True: it was one of them. */
bool silt_brood_on_died(struct silt_brood *b, pid_t pid, int status);
