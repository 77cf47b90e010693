/* SPDX-License-Identifier: Apache-2.0 */
#include "super/outlook.h"
#include "base/log.h"
#include "base/own.h"

enum { CALM_MS = 300 };

static void on_calm(struct silt_timer *t)
{
    struct silt_outlook *o = silt_container_of(t, struct silt_outlook, calm);
    struct silt_error e;
    if (silt_gate_follow(o->gate, &e) < 0)
        silt_log(SILT_LOG_WARN, "super.outlook", "error=\"%s\"", e.text);
}

static void on_change(struct silt_watch *w, uint32_t events)
{
    struct silt_outlook *o = silt_container_of(w, struct silt_outlook, changes);
    (void)events;
    silt_devices_heard(w->fd);
    if (o->calm.place == 0)
        silt_loop_after(o->loop, &o->calm, CALM_MS);
}

void silt_outlook_open(struct silt_outlook *o, struct silt_loop *loop, struct silt_gate *gate)
{
    struct silt_error e;
    *o = (struct silt_outlook){.loop = loop,
                               .gate = gate,
                               .changes = {.fd = -1, .on_ready = on_change},
                               .calm = {.on_time = on_calm}};
    if (gate->ns < 0)
        return;
    if (silt_gate_listen(gate, &o->changes.fd, &e) < 0) {
        silt_log(SILT_LOG_WARN, "super.outlook", "error=\"%s\"", e.text);
        return;
    }
    silt_loop_watch(loop, &o->changes, EPOLLIN);
    silt_loop_after(loop, &o->calm, CALM_MS); /* what changed before we listened */
}

void silt_outlook_close(struct silt_outlook *o)
{
    if (o->changes.fd < 0)
        return;
    silt_loop_cancel(o->loop, &o->calm);
    silt_loop_forget(o->loop, &o->changes);
    silt_close_fd(&o->changes.fd);
}
