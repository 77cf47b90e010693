/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/pack.h"
#include "worker/walk.h"

#include <fcntl.h>

struct listing {
    struct silt_task *task;
    struct silt_pack pack;
    struct silt_worker_done done;
};

static int add(struct listing *l, const struct silt_walk_item *i, struct silt_error *e)
{
    struct silt_worker_entry entry = {
        .size = (uint64_t)i->st->st_size,
        .mtime_ns = silt_ns_of(i->st->st_mtim),
        .mode = i->st->st_mode & 07777,
        .type = silt_type_of(i->st->st_mode),
        .uid = i->st->st_uid,
        .gid = i->st->st_gid,
        .name_len = (uint32_t)i->path.len,
    };
    l->done.entries++;
    if (!silt_pack_add(&l->pack, (silt_slice){(const char *)&entry, sizeof(entry)}, i->path,
                       (silt_slice){NULL, 0}))
        return silt_fail(e, SILT_GONE, "nobody waits any more");
    return 0;
}

/* A hidden directory is not listed, but its contents are: like `find -not -name '.*'`. */
static int on_item(void *ctx, const struct silt_walk_item *i, struct silt_error *e)
{
    struct listing *l = ctx;
    bool hidden = i->name[0] == '.' && !silt_task_has(l->task, SILT_WORKER_HIDDEN);
    if (!hidden && add(l, i, e) < 0)
        return -1;
    return silt_task_has(l->task, SILT_WORKER_RECURSIVE) ? 1 : 0;
}

int silt_task_list(struct silt_task *t, struct silt_error *e)
{
    struct listing l = {.task = t, .pack = {.task = t, .say = SILT_WORKER_SAY_ENTRIES}};
    struct silt_walk w = {.task = t, .enter = on_item, .ctx = &l};
    int fd;
    if (silt_task_open(t, t->path, O_RDONLY | O_DIRECTORY, 0, &fd, e) < 0)
        return -1;
    int answer = silt_walk_run(&w, fd, e);
    (void)silt_pack_flush(&l.pack);
    if (answer < 0)
        return silt_because(e, "list %s", t->path);
    (void)silt_task_done(t, &l.done);
    return 0;
}
