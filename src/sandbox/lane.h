/* SPDX-License-Identifier: Apache-2.0 */
/* lane: turns for what is large and of which siltd keeps only so many at once. One user has a few of them at a
 * time, and all users together have many; who waits comes in the order of asking. */
#pragma once

#include "base/list.h"

struct silt_lanes {
    struct silt_link waiting; /* struct silt_lane */
    unsigned taken, max;      /* by all */
    unsigned each_max;        /* by one user */
};

struct silt_lane_user {
    unsigned taken;
};

struct silt_lane {
    struct silt_link link;
    struct silt_lanes *all;      /* borrowed */
    struct silt_lane_user *user; /* borrowed; NULL: it is gone */
    enum { SILT_LANE_OUT, SILT_LANE_WAITING, SILT_LANE_IN } state;
    void (*on_turn)(struct silt_lane *l); /* it is in, after it had to wait */
};

void silt_lanes_init(struct silt_lanes *all, unsigned max, unsigned each_max);
/* True: it is in. False: on_turn will tell. Fine at any time. */
bool silt_lane_enter(struct silt_lane *l);
/* `to`, whose memory may hold anything, has the place of `from`, which is out; nobody gets a turn by it. `from` does
 * not wait. */
void silt_lane_pass(struct silt_lane *from, struct silt_lane *to);
/* Its user goes: it counts among all only. */
void silt_lane_disown(struct silt_lane *l);
/* It is out, whatever it was. Others may have their turn at once. */
void silt_lane_leave(struct silt_lane *l);
