/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/file/transfer.h"

void silt_transfer_leave(struct silt_transfer *t)
{
    struct silt_work *from = t->from, *to = t->to;
    t->from = t->to = NULL;
    if (from != NULL)
        silt_work_leave(from);
    if (to != NULL)
        silt_work_leave(to);
    silt_buf_fini(&t->held);
}

static void finish(struct silt_transfer *t, const struct silt_error *e)
{
    silt_transfer_leave(t);
    t->on_done(t, e);
}

/* The last packed bytes finish the unpacking, after all bytes before them are accepted. */
static void push(struct silt_transfer *t)
{
    bool last = t->all;
    if (t->to == NULL || (t->held.len == 0 && !last))
        return;
    if (!silt_work_feed(t->to, silt_buf_slice(&t->held), last))
        return;
    silt_buf_clear(&t->held);
    t->all = false;
    if (t->from != NULL)
        silt_work_pause(t->from, false);
}

static void on_packed(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                      bool last)
{
    struct silt_transfer *t = silt_outer(sink, struct silt_transfer, from_sink);
    if (last)
        t->from = NULL;
    if (type == SILT_WORKER_SAY_DATA)
        silt_buf_add(&t->held, body);
    t->all = last;
    if (!last)
        silt_work_pause(t->from, true);
    push(t);
}

static void on_not_packed(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct silt_transfer *t = silt_outer(sink, struct silt_transfer, from_sink);
    t->from = NULL;
    finish(t, e);
}

static void on_unpacked(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                        bool last)
{
    struct silt_transfer *t = silt_outer(sink, struct silt_transfer, to_sink);
    (void)type;
    (void)body;
    if (!last)
        return;
    t->to = NULL;
    finish(t, NULL);
}

static void on_not_unpacked(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct silt_transfer *t = silt_outer(sink, struct silt_transfer, to_sink);
    t->to = NULL;
    finish(t, e);
}

static void on_room(struct silt_work_sink *sink)
{
    push(silt_outer(sink, struct silt_transfer, to_sink));
}

int silt_transfer_start(struct silt_transfer *t, struct silt_sandbox *from, silt_slice from_path,
                        struct silt_sandbox *to, silt_slice to_path, struct silt_error *e)
{
    struct silt_work_request pack = {.kind = SILT_WORK_PACED,
                                     .op = SILT_WORKER_TAR,
                                     .path = from_path,
                                     .patience_ms = SILT_WORK_PATIENCE_MS};
    struct silt_work_request unpack = {
        .kind = SILT_WORK_PACED,
        .op = SILT_WORKER_UNTAR,
        .path = to_path,
        .ask = {.flags = SILT_WORKER_PARENTS | SILT_WORKER_OWNERS, .mode = 0777},
        .patience_ms = SILT_WORK_PATIENCE_MS};
    t->from_sink = (struct silt_work_sink){.said = on_packed, .failed = on_not_packed};
    t->to_sink =
        (struct silt_work_sink){.said = on_unpacked, .failed = on_not_unpacked, .room = on_room};
    t->from = t->to = NULL;
    t->all = false;
    silt_buf_init(&t->held, SILT_FRAME_BODY_MAX);
    if (silt_work_start(from, &pack, &t->from_sink, &t->from, e) < 0)
        return -1;
    if (silt_work_start(to, &unpack, &t->to_sink, &t->to, e) == 0)
        return 0;
    silt_transfer_leave(t);
    return -1;
}
