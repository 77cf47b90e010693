/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/lane.h"

void silt_lanes_init(struct silt_lanes *all, unsigned max, unsigned each_max)
{
    *all = (struct silt_lanes){.max = max, .each_max = each_max};
    silt_list_init(&all->waiting);
}

static bool has_room(const struct silt_lane *l)
{
    return l->all->taken < l->all->max && l->user->taken < l->all->each_max;
}

static void take(struct silt_lane *l)
{
    l->state = SILT_LANE_IN;
    l->all->taken++;
    l->user->taken++;
}

bool silt_lane_enter(struct silt_lane *l)
{
    if (l->state != SILT_LANE_OUT)
        return l->state == SILT_LANE_IN;
    if (has_room(l)) {
        take(l);
        return true;
    }
    l->state = SILT_LANE_WAITING;
    silt_list_append(&l->all->waiting, &l->link);
    return false;
}

/* The first whose user has not too many already: he alone is put off by them. */
static struct silt_lane *next(struct silt_lanes *all)
{
    silt_list_each(it, &all->waiting)
    {
        struct silt_lane *l = silt_container_of(it, struct silt_lane, link);
        if (has_room(l))
            return l;
    }
    return NULL;
}

static void let_others_in(struct silt_lanes *all)
{
    struct silt_lane *other;
    while ((other = next(all)) != NULL) {
        silt_list_remove(&other->link);
        take(other);
        other->on_turn(other);
    }
}

void silt_lane_pass(struct silt_lane *from, struct silt_lane *to)
{
    *to = (struct silt_lane){.all = from->all, .user = from->user, .state = from->state};
    from->state = SILT_LANE_OUT;
}

void silt_lane_disown(struct silt_lane *l)
{
    if (l->state == SILT_LANE_IN && l->user != NULL)
        l->user->taken--;
    l->user = NULL;
    let_others_in(l->all);
}

void silt_lane_leave(struct silt_lane *l)
{
    if (l->state == SILT_LANE_WAITING)
        silt_list_remove(&l->link);
    if (l->state == SILT_LANE_IN) {
        l->all->taken--;
        if (l->user != NULL)
            l->user->taken--;
    }
    l->state = SILT_LANE_OUT;
    let_others_in(l->all);
}
