/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages. A thread parses the message and builds the request, which would block the loop
 * for up to a second. Meanwhile nothing is read from the client; the few messages that arrived with
 * the end of the large one are queued, so that all are handled in order. */
#include "api/rpc/rpc.h"
#include "base/own.h"

#include <assert.h>
#include <stdlib.h>

enum {
    BODY_MAX = 128 << 20, /* a message with all strings re-escaped */
    LATER_MAX = 1 << 20,  /* more than one read, in the smallest possible messages */
};

struct silt_rpc_long {
    struct silt_job job;
    struct silt_rpc *line; /* borrowed; NULL: the connection is gone */
    struct silt_buf bytes;
    struct silt_buf later; /* queued messages, each preceded by its size */
    struct silt_arena arena;
    struct silt_rpc_message message;
    struct silt_rpc_laid
        laid; /* method NULL: not a method call, or one that needs the connection's tables */
    struct silt_error error;
    bool good;
    char id[SILT_ID_MAX + 1];
};

void silt_rpc_lay(struct silt_rpc_laid *ret, const struct silt_rpc_method *m,
                  const struct silt_json *args, const char *sandbox)
{
    ret->method = m;
    silt_rpc_request_init(&ret->request, BODY_MAX);
    ret->wrong = silt_rpc_request_lay(m, args, sandbox, &ret->request);
}

/* Runs on a thread. The loop checks the same conditions again. */
static void run(struct silt_job *j)
{
    struct silt_rpc_long *h = silt_outer(j, struct silt_rpc_long, job);
    struct silt_rpc_invocation v;
    struct silt_rpc_refs refs;
    h->good = silt_rpc_read(&h->arena, silt_buf_slice(&h->bytes), &h->message, &h->error);
    if (!h->good || h->message.kind != SILT_RPC_PUSH
        || !silt_rpc_is_invocation(h->message.value, &v) || v.target != 0 || v.args == NULL
        || !silt_rpc_args_refs(v.args, &refs) || refs.foreign)
        return;
    const struct silt_rpc_method *m = silt_rpc_method_find(v.path, v.args);
    if (m != NULL)
        silt_rpc_lay(&h->laid, m, v.args, h->id);
}

static void free_long(struct silt_rpc_long *h)
{
    if (h->laid.method != NULL)
        silt_rpc_request_fini(&h->laid.request);
    silt_arena_fini(&h->arena);
    silt_buf_fini(&h->bytes);
    silt_buf_fini(&h->later);
    free(h);
}

static void take_later(struct silt_rpc *l, silt_slice rest)
{
    while (rest.len > 0 && !l->is_over) {
        uint32_t size;
        memcpy(&size, rest.data, sizeof(size));
        silt_rpc_hear(l, (silt_slice){rest.data + sizeof(size), size});
        rest = (silt_slice){rest.data + sizeof(size) + size, rest.len - sizeof(size) - size};
    }
}

static void on_done(struct silt_job *j)
{
    struct silt_rpc_long *h = silt_outer(j, struct silt_rpc_long, job);
    struct silt_rpc *l = h->line;
    if (l != NULL) {
        l->reading = NULL;
        silt_rpc_hold(l, -(ptrdiff_t)h->bytes.len);
        l->laid = h->laid.method != NULL ? &h->laid : NULL;
        silt_rpc_heard(l, h->good ? &h->message : NULL, &h->error);
        l->laid = NULL;
        take_later(l, silt_buf_slice(&h->later));
    }
    if (l != NULL)
        silt_rpc_mind(l);
    free_long(h);
}

void silt_rpc_long_start(struct silt_rpc *l, silt_slice bytes)
{
    struct silt_rpc_long *h = calloc(1, sizeof(*h));
    if (h == NULL)
        abort();
    assert(l->reading == NULL);
    h->job = (struct silt_job){.run = run, .done = on_done};
    h->line = l;
    memcpy(h->id, l->id, sizeof(h->id));
    silt_buf_init(&h->bytes, bytes.len);
    silt_buf_add(&h->bytes, bytes);
    silt_buf_init(&h->later, LATER_MAX);
    silt_arena_init(&h->arena, SILT_RPC_ARENA_MAX);
    l->reading = h;
    silt_rpc_hold(l, (ptrdiff_t)bytes.len);
    silt_rpc_mind(l);
    silt_worker_submit(l->api->registry->parsers, &h->job);
}

void silt_rpc_long_later(struct silt_rpc *l, silt_slice bytes)
{
    struct silt_buf *b = &l->reading->later;
    uint32_t size = (uint32_t)bytes.len;
    silt_buf_add(b, (silt_slice){(const char *)&size, sizeof(size)});
    silt_buf_add(b, bytes);
    if (b->broken)
        silt_rpc_abort(l, "too many messages behind a long one");
}

void silt_rpc_long_leave(struct silt_rpc *l)
{
    if (l->reading != NULL)
        l->reading->line = NULL;
    l->reading = NULL;
}
