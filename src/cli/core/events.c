/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/events.h"
#include "cli/core/sse.h"

static int take_one(silt_slice data, silt_events_take take, void *to, struct silt_error *e)
{
    silt_auto_arena a;
    const struct silt_json *event;
    silt_arena_init(&a, 4 * (size_t)SILT_SSE_EVENT_MAX);
    if (silt_json_read(&a, data, &event, e) < 0)
        return silt_because(e, "event of the stream");
    return take(to, event, e);
}

static int follow(struct silt_client *c, struct silt_sse *sse, silt_events_take take, void *to,
                  struct silt_error *e)
{
    silt_slice piece, data;
    int got;
    while ((got = silt_client_read(c, &piece, e)) > 0)
        while ((got = silt_sse_next(sse, &piece, &data, e)) != 0) {
            if (got > 0)
                got = take_one(data, take, to, e);
            if (got != 0)
                return got;
        }
    return got;
}

int silt_events_follow(struct silt_client *c, const struct silt_client_request *q,
                       silt_events_take take, void *to, struct silt_error *e)
{
    struct silt_sse sse;
    int limit_ms = c->timeout_ms;
    if (silt_client_ask(c, q, e) < 0)
        return -1;
    if (c->head.status != 200)
        return silt_client_fail(c, e);
    c->timeout_ms = -1; /* a command without output may still be working */
    silt_sse_init(&sse);
    int got = follow(c, &sse, take, to, e);
    silt_sse_fini(&sse);
    c->timeout_ms = limit_ms;
    return got;
}
