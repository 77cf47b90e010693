/* SPDX-License-Identifier: Apache-2.0 */
/* guess_limit: counts requests for unknown previews per client address. An address that guesses
 * too often is rejected for a while. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    SILT_GUESS_PLACES = 4096
}; /* addresses share them by hash: memory is bounded, and a neighbour's fault is forgiven soon */

struct silt_guess_limit {
    uint64_t seed;
    struct {
        uint32_t count;
        int64_t at_ms;
    } places[SILT_GUESS_PLACES];
};

void silt_guess_limit_init(struct silt_guess_limit *g);
bool silt_guess_limit_may(struct silt_guess_limit *g, const struct sockaddr *who, int64_t now_ms);
void silt_guess_limit_wrong(struct silt_guess_limit *g, const struct sockaddr *who, int64_t now_ms);
