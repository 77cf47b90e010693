/* SPDX-License-Identifier: Apache-2.0 */
/* What a capnweb peer says: whatever is taken keeps its bounds and becomes a request whose body is
 * JSON. And JSON as capnweb writes it comes back as it was. */
#include "fuzz/fuzz.h"
#include "api/rpc/method.h"
#include "api/rpc/text.h"
#include "base/own.h"

static struct silt_error e;

/* The table of methods names them; nobody is called here. */
#define NOBODY(name)                                                                               \
    SILT_HANDLER(name)                                                                             \
    {                                                                                              \
        (void)r;                                                                                   \
        (void)args;                                                                                \
        abort();                                                                                   \
    }
NOBODY(silt_api_file_raw)
NOBODY(silt_api_file_feed)
NOBODY(silt_api_process_get)
NOBODY(silt_api_process_kill)
NOBODY(silt_api_process_logs)
NOBODY(silt_api_process_stream)
NOBODY(silt_api_context_delete)
NOBODY(silt_api_watch_anywhere)
NOBODY(silt_api_watch_check_anywhere)

static const struct silt_json *parsed(struct silt_arena *a, silt_slice text)
{
    const struct silt_json *v;
    return silt_json_read(a, text, &v, &e) == 0 ? v : NULL;
}

static void check_value(struct silt_arena *a, const struct silt_json *v)
{
    silt_auto_buf b;
    struct silt_rpc_refs refs;
    silt_buf_init(&b, 1 << 28);
    if (!silt_rpc_refs(v, &refs))
        return;
    demand(refs.count <= SILT_RPC_REFS_MAX && refs.pipe_count <= SILT_RPC_REFS_MAX);
    silt_rpc_plain(&b, v);
    demand(!b.broken && parsed(a, silt_buf_slice(&b)) != NULL);
}

static void check_call(struct silt_arena *a, const struct silt_rpc_invocation *v)
{
    struct silt_rpc_refs refs;
    struct silt_rpc_request q;
    const struct silt_rpc_method *m = silt_rpc_method_find(v->path, v->args);
    if (m == NULL || v->args == NULL || !silt_rpc_args_refs(v->args, &refs))
        return;
    silt_rpc_request_init(&q, 1 << 28);
    if (silt_rpc_request_lay(m, v->args, "box", &q) == NULL) {
        demand(!q.body.broken && (q.body.len == 0 || parsed(a, silt_buf_slice(&q.body)) != NULL));
        demand(!q.head.broken && (m->verb == NULL) == (q.head.len == 0));
        for (size_t i = 0; i < q.head.len; i++)
            demand(q.head.data[i] == '\r' || q.head.data[i] == '\n' || q.head.data[i] >= ' ');
    }
    silt_rpc_request_fini(&q);
}

static void check_message(silt_slice text)
{
    silt_auto_arena arena;
    struct silt_rpc_message m;
    struct silt_rpc_invocation v;
    silt_arena_init(&arena, 1 << 28);
    if (!silt_rpc_read(&arena, text, &m, &e)) {
        demand(silt_slice_is_utf8(silt_slice_of(e.text)));
        return;
    }
    if (m.value != NULL)
        check_value(&arena, m.value);
    if (m.value != NULL && silt_rpc_is_invocation(m.value, &v))
        check_call(&arena, &v);
}

static void check_wrapped(silt_slice json)
{
    silt_auto_arena arena;
    silt_auto_buf wrapped, plain, same;
    struct silt_rpc_refs refs;
    silt_arena_init(&arena, 1 << 28);
    silt_buf_init(&wrapped, 1 << 28);
    silt_buf_init(&plain, 1 << 28);
    silt_buf_init(&same, 1 << 28);
    const struct silt_json *v = parsed(&arena, json);
    silt_rpc_wrap(&wrapped, json);
    const struct silt_json *w = v != NULL ? parsed(&arena, silt_buf_slice(&wrapped)) : NULL;
    if (w == NULL)
        return; /* no JSON, or too deep with twice the levels */
    demand(silt_rpc_refs(w, &refs) && refs.count + refs.pipe_count == 0 && !refs.foreign);
    silt_rpc_plain(&plain, w);
    silt_json_value(&same, v);
    demand(silt_slice_eq(silt_buf_slice(&plain), silt_buf_slice(&same)));
}

static void check_text(silt_slice json)
{
    silt_auto_arena arena;
    silt_auto_buf b;
    silt_arena_init(&arena, 1 << 28);
    silt_buf_init(&b, 1 << 28);
    silt_rpc_pick(&b, json, "a b=c d@ e(f g(h)) success! n!", 7);
    silt_rpc_pick_one(&b, json, "e(f g)");
    silt_buf_clear(&b);
    silt_rpc_refusal(&b, json);
    demand(!b.broken);
    if (parsed(&arena, json) != NULL)
        demand(parsed(&arena, silt_buf_slice(&b)) != NULL
               || json.len > 60); /* its context may be too deep */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice bytes = {(const char *)data, size};
    check_message(bytes);
    check_wrapped(bytes);
    check_text(bytes);
    return 0;
}
