/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/path_at.h"

#include <errno.h>

int silt_task_symlink(struct silt_task *t, struct silt_error *e)
{
    struct silt_worker_done done = {.entries = 1};
    silt_auto_place p = {.dir = -1};
    unsigned how = silt_task_has(t, SILT_WORKER_PARENTS) ? SILT_PATH_AT_PARENTS : 0;
    if (silt_path_at_find(t, t->to, how, &p, e) < 0)
        return -1;
    if (symlinkat(t->path, p.dir, p.name) < 0)
        return silt_fail_errno(e, "link %s", t->to);
    (void)silt_task_done(t, &done);
    return 0;
}

int silt_task_readlink(struct silt_task *t, struct silt_error *e)
{
    char target[SILT_WORKER_PATH_MAX];
    silt_auto_place p = {.dir = -1};
    if (silt_path_at_find(t, t->path, 0, &p, e) < 0)
        return -1;
    ssize_t n = readlinkat(p.dir, p.name, target, sizeof(target));
    if (n < 0)
        return silt_fail_errno(e, "read link %s", t->path);
    (void)silt_task_say(t, SILT_WORKER_SAY_DATA, SILT_WORKER_LAST, (silt_slice){target, (size_t)n},
                        (silt_slice){NULL, 0});
    return 0;
}
