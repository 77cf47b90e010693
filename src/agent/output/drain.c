/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/drain.h"
#include "base/own.h"

#include <errno.h>
#include <unistd.h>

/* A job that writes endlessly would keep PID 1 busy outside the guest's CPU quota, so it is read
 * only this often. */
enum { REST_MS = 10 };

static void close_drain(struct silt_drain *d)
{
    silt_loop_forget(d->all->loop, &d->watch);
    silt_close_fd(&d->watch.fd);
    d->resting = false;
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    struct silt_drain *d = silt_outer(w, struct silt_drain, watch);
    char bytes[4096];
    ssize_t n = 1;
    (void)events;
    for (int i = 0; i < 16 && n > 0; i++)
        n = read(w->fd, bytes, sizeof(bytes));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close_drain(d);
        return;
    }
    silt_loop_forget(d->all->loop, w);
    d->resting = true;
    if (d->all->timer.place == 0)
        silt_loop_after(d->all->loop, &d->all->timer, REST_MS);
}

static void on_rested(struct silt_timer *t)
{
    struct silt_drains *all = silt_outer(t, struct silt_drains, timer);
    for (size_t i = 0; i < SILT_DRAINS_MAX; i++) {
        struct silt_drain *d = &all->list[i];
        if (!d->resting)
            continue;
        d->resting = false;
        silt_loop_watch(all->loop, &d->watch, EPOLLIN);
    }
}

void silt_drains_init(struct silt_drains *all, struct silt_loop *loop)
{
    all->loop = loop;
    all->timer.on_time = on_rested;
    for (size_t i = 0; i < SILT_DRAINS_MAX; i++)
        all->list[i].watch.fd = -1;
}

static struct silt_drain *free_place(struct silt_drains *all)
{
    struct silt_drain *oldest = &all->list[0];
    for (size_t i = 0; i < SILT_DRAINS_MAX; i++) {
        if (all->list[i].watch.fd < 0)
            return &all->list[i];
        if (all->list[i].age < oldest->age)
            oldest = &all->list[i];
    }
    close_drain(oldest);
    return oldest;
}

void silt_drains_add(struct silt_drains *all, int fd)
{
    struct silt_drain *d = free_place(all);
    *d = (struct silt_drain){.all = all, .age = ++all->ages};
    d->watch = (struct silt_watch){.fd = fd, .on_ready = on_ready};
    silt_loop_watch(all->loop, &d->watch, EPOLLIN);
}
