/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/fair_queue.h"

void silt_fair_queue_init(struct silt_fair_queue *all, unsigned max, unsigned each_max)
{
    *all = (struct silt_fair_queue){.max = max, .each_max = each_max};
    silt_list_init(&all->waiting);
}

static bool has_room(const struct silt_fair_queue_turn *l)
{
    return l->all->taken < l->all->max && l->user->taken < l->all->each_max;
}

static void take(struct silt_fair_queue_turn *l)
{
    l->state = SILT_FAIR_QUEUE_TURN_IN;
    l->all->taken++;
    l->user->taken++;
}

bool silt_fair_queue_turn_enter(struct silt_fair_queue_turn *l)
{
    if (l->state != SILT_FAIR_QUEUE_TURN_OUT)
        return l->state == SILT_FAIR_QUEUE_TURN_IN;
    if (has_room(l)) {
        take(l);
        return true;
    }
    l->state = SILT_FAIR_QUEUE_TURN_WAITING;
    silt_list_append(&l->all->waiting, &l->link);
    return false;
}

/* The first waiter with room. A user at its limit is skipped and delays only itself. */
static struct silt_fair_queue_turn *next(struct silt_fair_queue *all)
{
    silt_list_each(it, &all->waiting)
    {
        struct silt_fair_queue_turn *l = silt_outer(it, struct silt_fair_queue_turn, link);
        if (has_room(l))
            return l;
    }
    return NULL;
}

static void let_others_in(struct silt_fair_queue *all)
{
    struct silt_fair_queue_turn *other;
    while ((other = next(all)) != NULL) {
        silt_list_remove(&other->link);
        take(other);
        other->on_turn(other);
    }
}

void silt_fair_queue_turn_pass(struct silt_fair_queue_turn *from, struct silt_fair_queue_turn *to)
{
    *to = (struct silt_fair_queue_turn){.all = from->all, .user = from->user, .state = from->state};
    from->state = SILT_FAIR_QUEUE_TURN_OUT;
}

void silt_fair_queue_turn_disown(struct silt_fair_queue_turn *l)
{
    if (l->state == SILT_FAIR_QUEUE_TURN_IN && l->user != NULL)
        l->user->taken--;
    l->user = NULL;
    let_others_in(l->all);
}

void silt_fair_queue_turn_leave(struct silt_fair_queue_turn *l)
{
    if (l->state == SILT_FAIR_QUEUE_TURN_WAITING)
        silt_list_remove(&l->link);
    if (l->state == SILT_FAIR_QUEUE_TURN_IN) {
        l->all->taken--;
        if (l->user != NULL)
            l->user->taken--;
    }
    l->state = SILT_FAIR_QUEUE_TURN_OUT;
    let_others_in(l->all);
}
