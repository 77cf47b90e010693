/* SPDX-License-Identifier: Apache-2.0 */
/* undo: the last commands of a sandbox and, where its autoSnapshot asks for it, a snapshot before
 * each. A command waits for its snapshot, but for a short time only, and runs also without one; the
 * history says why there is none. Where nothing was written since the last snapshot, a command
 * shares it. Runs in siltd. */
#pragma once

#include "sandbox/core/facet.h"
#include "sandbox/image/snapshot.h"

enum { SILT_HISTORY_MAX = 200 }; /* commands per sandbox */

extern const struct silt_facet silt_undo_facet;

struct silt_history {
    struct silt_link link; /* in sandbox->history, the newest last */
    struct silt_history_row row;
};

/* The snapshot before a command; NULL: there is none, or it is gone. */
struct silt_image *silt_history_image(const struct silt_sandbox *s, const struct silt_history *h);
/* The command so many steps back, 1: the last one; NULL: there are not so many. */
struct silt_history *silt_history_at(const struct silt_sandbox *s, uint64_t steps);
/* Forgets the last commands from that one on. */
void silt_history_cut(struct silt_sandbox *s, uint64_t number);
