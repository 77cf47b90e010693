/* SPDX-License-Identifier: Apache-2.0 */
/* log_rate: limits how fast all logs of a sandbox are written. PID 1 runs outside the guest's CPU
 * quota, so a guest that writes endlessly must not gain CPU time through it. A log above the rate
 * waits for the next window and then finds more data in its pipe. */
#pragma once

#include "agent/output/channel.h"

/* 200 MiB/s in large pieces, 50,000 pieces/s in small ones: each is about a quarter of a CPU. */
enum {
    SILT_LOG_RATE_WINDOW_MS = 10,
    SILT_LOG_RATE_WINDOW = 2 << 20, /* bytes */
    SILT_LOG_RATE_PIECE = 4096,     /* fixed cost of a piece, in bytes */
};

struct silt_log_rate {
    struct silt_loop *loop; /* borrowed */
    struct silt_timer timer;
    int64_t left;           /* bytes left in this window */
    struct silt_link waits; /* struct silt_channel_wait */
};

void silt_log_rate_init(struct silt_log_rate *p, struct silt_loop *loop);
bool silt_log_rate_is_over(const struct silt_log_rate *p);
void silt_log_rate_spend(struct silt_log_rate *p, size_t bytes); /* one piece of output */
void silt_log_rate_wait(struct silt_log_rate *p,
                        struct silt_channel_wait *w); /* fine if already waiting */
