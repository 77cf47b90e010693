/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pace.h"

static void on_window(struct silt_timer *t)
{
    struct silt_pace *p = silt_container_of(t, struct silt_pace, timer);
    p->left = SILT_PACE_WINDOW;
    silt_list_each(it, &p->waits)
    {
        struct silt_channel_wait *w = silt_container_of(it, struct silt_channel_wait, link);
        silt_list_remove(&w->link);
        w->on_free(w); /* only listens again: nothing is spent before the loop goes on */
    }
}

void silt_pace_init(struct silt_pace *p, struct silt_loop *loop)
{
    p->loop = loop;
    p->timer.on_time = on_window;
    p->left = SILT_PACE_WINDOW;
    silt_list_init(&p->waits);
}

bool silt_pace_is_over(const struct silt_pace *p)
{
    return p->left <= 0;
}

void silt_pace_spend(struct silt_pace *p, size_t bytes)
{
    p->left -= (int64_t)bytes + SILT_PACE_PIECE;
    if (p->timer.place == 0)
        silt_loop_after(p->loop, &p->timer, SILT_PACE_WINDOW_MS);
}

void silt_pace_wait(struct silt_pace *p, struct silt_channel_wait *w)
{
    if (silt_list_empty(&w->link))
        silt_list_append(&p->waits, &w->link);
}
