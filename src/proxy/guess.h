/* SPDX-License-Identifier: Apache-2.0 */
/* guess: how often an address has asked for previews that are not there. Whoever guesses too often is not listened to for a while. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { SILT_GUESS_PLACES = 4096 }; /* addresses share them by hash: memory is bounded, and a neighbour's fault is forgiven soon */

struct silt_guesses {
    uint64_t seed;
    struct {
        uint32_t count;
        int64_t at_ms;
    } places[SILT_GUESS_PLACES];
};

void silt_guesses_init(struct silt_guesses *g);
bool silt_guesses_may(struct silt_guesses *g, const struct sockaddr *who, int64_t now_ms);
void silt_guesses_wrong(struct silt_guesses *g, const struct sockaddr *who, int64_t now_ms);
