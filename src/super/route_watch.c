/* SPDX-License-Identifier: Apache-2.0 */
#include "super/route_watch.h"
#include "base/log.h"
#include "base/own.h"

enum { CALM_MS = 300 };

static void on_calm(struct silt_timer *t)
{
    struct silt_route_watch *o = silt_outer(t, struct silt_route_watch, calm);
    struct silt_error e;
    if (silt_gateway_follow(o->gate, &e) < 0)
        silt_log(SILT_LOG_WARN, "super.outlook", "error=\"%s\"", e.text);
}

static void on_change(struct silt_watch *w, uint32_t events)
{
    struct silt_route_watch *o = silt_outer(w, struct silt_route_watch, changes);
    (void)events;
    silt_devices_heard(w->fd);
    if (o->calm.place == 0)
        silt_loop_after(o->loop, &o->calm, CALM_MS);
}

void silt_route_watch_open(struct silt_route_watch *o, struct silt_loop *loop,
                           struct silt_gateway *gate)
{
    struct silt_error e;
    *o = (struct silt_route_watch){.loop = loop,
                                   .gate = gate,
                                   .changes = {.fd = -1, .on_ready = on_change},
                                   .calm = {.on_time = on_calm}};
    if (gate->ns < 0)
        return;
    if (silt_gateway_listen(gate, &o->changes.fd, &e) < 0) {
        silt_log(SILT_LOG_WARN, "super.outlook", "error=\"%s\"", e.text);
        return;
    }
    silt_loop_watch(loop, &o->changes, EPOLLIN);
    silt_loop_after(loop, &o->calm, CALM_MS); /* for changes before we listened */
}

void silt_route_watch_close(struct silt_route_watch *o)
{
    if (o->changes.fd < 0)
        return;
    silt_loop_cancel(o->loop, &o->calm);
    silt_loop_forget(o->loop, &o->changes);
    silt_close_fd(&o->changes.fd);
}
