/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/log_rate.h"

static void on_window(struct silt_timer *t)
{
    struct silt_log_rate *p = silt_outer(t, struct silt_log_rate, timer);
    p->left = SILT_LOG_RATE_WINDOW;
    silt_list_each(it, &p->waits)
    {
        struct silt_channel_wait *w = silt_outer(it, struct silt_channel_wait, link);
        silt_list_remove(&w->link);
        w->on_free(w); /* only resumes watching: nothing is spent before the loop continues */
    }
}

void silt_log_rate_init(struct silt_log_rate *p, struct silt_loop *loop)
{
    p->loop = loop;
    p->timer.on_time = on_window;
    p->left = SILT_LOG_RATE_WINDOW;
    silt_list_init(&p->waits);
}

bool silt_log_rate_is_over(const struct silt_log_rate *p)
{
    return p->left <= 0;
}

void silt_log_rate_spend(struct silt_log_rate *p, size_t bytes)
{
    p->left -= (int64_t)bytes + SILT_LOG_RATE_PIECE;
    if (p->timer.place == 0)
        silt_loop_after(p->loop, &p->timer, SILT_LOG_RATE_WINDOW_MS);
}

void silt_log_rate_wait(struct silt_log_rate *p, struct silt_channel_wait *w)
{
    if (silt_list_empty(&w->link))
        silt_list_append(&p->waits, &w->link);
}
