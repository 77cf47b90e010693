/* SPDX-License-Identifier: Apache-2.0 */
/* fair_queue: limits how many large jobs siltd holds in memory at once, per user and in total. Jobs
 * past a limit wait in FIFO order; a user at its own limit does not block the others.
 * Single-threaded; nothing here fails. */
#pragma once

#include "base/list.h"

struct silt_fair_queue {
    struct silt_link waiting; /* struct silt_fair_queue_turn */
    unsigned taken, max;      /* of all users */
    unsigned each_max;        /* of one user */
};

struct silt_fair_queue_user {
    unsigned taken;
};

struct silt_fair_queue_turn {
    struct silt_link link;
    struct silt_fair_queue *all;       /* borrowed */
    struct silt_fair_queue_user *user; /* borrowed; NULL: gone */
    enum { SILT_FAIR_QUEUE_TURN_OUT, SILT_FAIR_QUEUE_TURN_WAITING, SILT_FAIR_QUEUE_TURN_IN } state;
    void (*on_turn)(struct silt_fair_queue_turn *l); /* admitted, after waiting */
};

void silt_fair_queue_init(struct silt_fair_queue *all, unsigned max, unsigned each_max);
/* True: admitted at once. False: on_turn will be called. May be called in any state. */
bool silt_fair_queue_turn_enter(struct silt_fair_queue_turn *l);
/* Moves the place of `from` (not waiting) to `to`, which may be uninitialized; `from` is then out
 * and no waiter is admitted. */
void silt_fair_queue_turn_pass(struct silt_fair_queue_turn *from, struct silt_fair_queue_turn *to);
/* The user goes away: the turn now counts towards the total only. */
void silt_fair_queue_turn_disown(struct silt_fair_queue_turn *l);
/* Leaves from any state. May admit other turns before it returns. */
void silt_fair_queue_turn_leave(struct silt_fair_queue_turn *l);
