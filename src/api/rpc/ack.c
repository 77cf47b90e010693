/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements of the client's writes, in order and at least DELAY_US late. capnweb 0.8 sizes
 * its window by bytes / time * round trip, in whole milliseconds of its clock. With a round trip of
 * 0 the window becomes 0 * Infinity, and a writer that waits for room then waits for ever. */
#include "api/rpc/rpc.h"
#include "base/clock.h"

enum {
    DELAY_US = 2000, /* the client's clock moves by one at least */
    AGAIN_MS = 1,
    ACKS_MAX = 1 << 20, /* bytes that wait, per connection: 65,536 of them */
};

struct ack {
    int64_t id, due_us;
};

static void say_due(struct silt_rpc *l, int64_t now_us)
{
    static const silt_slice undefined = {"[\"undefined\"]", 13};
    struct ack a;
    size_t used = 0;
    for (; used < l->acks.len; used += sizeof(a)) { /* none is left when saying one ends it all */
        memcpy(&a, l->acks.data + used, sizeof(a));
        if (a.due_us > now_us)
            break;
        silt_rpc_say_value(l, "resolve", a.id, undefined);
    }
    if (!l->is_over)
        silt_buf_drop(&l->acks, used);
}

static void on_time(struct silt_timer *t)
{
    struct silt_rpc *l = silt_outer(t, struct silt_rpc, ack_timer);
    say_due(l, silt_clock_us());
    if (l->acks.len > 0)
        silt_loop_after(l->api->loop, &l->ack_timer, AGAIN_MS);
}

void silt_rpc_acks_init(struct silt_rpc *l)
{
    silt_buf_init(&l->acks, ACKS_MAX);
    l->ack_timer.on_time = on_time;
}

void silt_rpc_acks_drop(struct silt_rpc *l)
{
    silt_loop_cancel(l->api->loop, &l->ack_timer);
    silt_buf_fini(&l->acks);
}

void silt_rpc_ack(struct silt_rpc *l, int64_t id)
{
    struct ack a = {.id = id, .due_us = silt_clock_us() + DELAY_US};
    if (l->acks.len + sizeof(a) > ACKS_MAX)
        say_due(l, INT64_MAX);
    if (l->is_over)
        return;
    if (l->acks.len == 0)
        silt_loop_after(l->api->loop, &l->ack_timer, DELAY_US / 1000 + AGAIN_MS);
    silt_buf_add(&l->acks, (silt_slice){(const char *)&a, sizeof(a)});
}
