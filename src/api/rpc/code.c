/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code whose events call the client's functions: one call at a time, each awaited. While one
 * is awaited, the code's output waits. */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"
#include "api/ws/frame.h"

static const struct {
    const char *event;
    size_t callback;
    const char *fields;
} rows[] = {
    {"stdout", 0, "text timestamp"},
    {"stderr", 1, "text timestamp"},
    {"result", 2, "text html png jpeg svg latex markdown javascript json chart data"},
    {"error", 3, "name=ename message=evalue traceback"},
};

static bool starts_line(silt_slice *rest, silt_slice what, silt_slice *ret)
{
    silt_slice line;
    if (!silt_slice_split(rest, '\n', &line) || !silt_slice_starts(line, what))
        return false;
    *ret = (silt_slice){line.data + what.len, line.len - what.len};
    return true;
}

static void call_back(struct silt_rpc_call *c, size_t row, silt_slice json)
{
    silt_auto_buf b;
    silt_buf_init(&b, 2 * json.len + 1024);
    silt_buf_addf(&b, "[\"push\",[\"pipeline\",%lld,[],[",
                  (long long)c->callbacks[rows[row].callback]);
    silt_rpc_pick(&b, json, rows[row].fields, 0);
    silt_buf_add(&b, SILT_LIT("]]]"));
    silt_rpc_say(c->line, &b);
    silt_rpc_wait_for(c, SILT_RPC_CALLBACK, 0);
    c->is_calling = true;
    silt_buf_clear(&b);
    silt_buf_addf(&b, "[\"pull\",%lld]", (long long)c->line->asked);
    silt_rpc_say(c->line, &b);
}

static void take_event(struct silt_rpc_call *c, silt_slice event)
{
    silt_slice name, json;
    if (!starts_line(&event, SILT_LIT("event: "), &name)
        || !starts_line(&event, SILT_LIT("data: "), &json))
        return; /* an SSE comment */
    for (size_t i = 0; i < SILT_COUNT(rows); i++)
        if (silt_slice_eq(name, silt_slice_of(rows[i].event))
            && c->callbacks[rows[i].callback] != 0)
            call_back(c, i, json);
}

void silt_rpc_code_go_on(struct silt_rpc_call *c)
{
    silt_slice rest = silt_buf_slice(&c->text), event;
    size_t all = rest.len;
    while (!c->is_calling && silt_ws_next_event(&rest, &event))
        take_event(c, event);
    silt_rpc_call_used(c, all - rest.len);
    if (!silt_rpc_call_source_has_ended(c) || c->is_calling)
        return;
    if (c->source == SILT_RPC_SOURCE_WHOLE)
        silt_rpc_call_settle(c, true, SILT_LIT("[\"undefined\"]"));
    else
        silt_rpc_call_fail(c, "OPERATION_INTERRUPTED", "The run broke off");
}

/* If a function fails, the call fails; the code keeps running. */
static void refuse(struct silt_rpc_call *c, const struct silt_json *value)
{
    silt_auto_buf b;
    silt_buf_init(&b, 1 << 20);
    silt_rpc_call_leave(c);
    if (value != NULL)
        silt_json_value(&b, value);
    if (value == NULL || b.broken)
        silt_rpc_call_fail(c, "INTERNAL_ERROR", "A callback failed");
    else
        silt_rpc_call_settle(c, false, silt_buf_slice(&b));
}

void silt_rpc_code_on_answer(struct silt_rpc_wait *w, bool good, const struct silt_json *value)
{
    struct silt_rpc_call *c = w->call;
    silt_rpc_say_release(c->line, w->id);
    silt_rpc_wait_drop(w);
    c->is_calling = false;
    if (!good) {
        refuse(c, value);
        return;
    }
    silt_rpc_code_go_on(c);
    if (c->state == SILT_RPC_FLOWING)
        silt_rpc_call_drain(c);
}
