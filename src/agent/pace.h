/* SPDX-License-Identifier: Apache-2.0 */
/* pace: how fast logs are written, all of a sandbox together. PID 1 works outside of the guest's
 * share of the processor: a guest that writes without end must not get a second one that way. Who
 * is too fast waits for the next window, and finds more in its pipe at once then. */
#pragma once

#include "agent/channel.h"

/* 200 MiB/s in large pieces, 50,000 pieces/s in small ones: each is about a quarter of a processor.
 */
enum {
    SILT_PACE_WINDOW_MS = 10,
    SILT_PACE_WINDOW = 2 << 20, /* bytes */
    SILT_PACE_PIECE = 4096,     /* what a piece costs beside its bytes */
};

struct silt_pace {
    struct silt_loop *loop; /* borrowed */
    struct silt_timer timer;
    int64_t left;           /* of this window */
    struct silt_link waits; /* struct silt_channel_wait */
};

void silt_pace_init(struct silt_pace *p, struct silt_loop *loop);
bool silt_pace_is_over(const struct silt_pace *p);
void silt_pace_spend(struct silt_pace *p, size_t bytes);               /* one piece of output */
void silt_pace_wait(struct silt_pace *p, struct silt_channel_wait *w); /* fine when waiting */
