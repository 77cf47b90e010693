/* SPDX-License-Identifier: Apache-2.0 */
/* drain: the read end of a finished command's output that a background job still writes to. We read
 * and discard until the job ends, so that its writes neither block nor fail. */
#pragma once

#include "event/loop.h"

enum { SILT_DRAINS_MAX = 64 }; /* beyond that the oldest is closed */

struct silt_drains;
struct silt_drain {
    struct silt_drains *all; /* borrowed */
    struct silt_watch watch; /* fd owned; -1: free */
    uint64_t age;
    bool resting;
};

struct silt_drains {
    struct silt_loop *loop; /* borrowed */
    struct silt_drain list[SILT_DRAINS_MAX];
    struct silt_timer timer;
    uint64_t ages;
};

void silt_drains_init(struct silt_drains *all, struct silt_loop *loop);
void silt_drains_add(struct silt_drains *all, int fd); /* takes fd */
