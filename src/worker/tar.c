/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ops.h"
#include "worker/path_at.h"
#include "worker/program.h"

#include <errno.h>
#include <fcntl.h>

static char room[SILT_FRAME_BODY_MAX];

int silt_tar_check(const struct silt_task *t, struct silt_error *e)
{
    if (silt_program_check("tar", e) < 0)
        return -1;
    return silt_task_has(t, SILT_WORKER_ZSTD) ? silt_program_check("zstd", e) : 0;
}

/* The end is sent only if tar succeeded: without it siltd knows that bytes are missing. */
static int pump(struct silt_task *t, struct silt_program *p, struct silt_error *e)
{
    size_t len;
    int more;
    const silt_slice none = {NULL, 0};
    while ((more = silt_program_read(p, room, sizeof(room), &len)) > 0)
        if (!silt_task_say(t, SILT_WORKER_SAY_DATA, 0, (silt_slice){room, len}, none))
            break;
    if (more != 0)
        return silt_fail(e, SILT_GONE, "nobody waits any more");
    if (silt_program_end(p, e) < 0)
        return silt_because(e, "pack %s", t->path);
    (void)silt_task_say(t, SILT_WORKER_SAY_DATA, SILT_WORKER_LAST, none, none);
    return 0;
}

/* Finds tar's directory and what to pack there. */
static int find(struct silt_task *t, struct silt_path_at *ret, struct silt_error *e)
{
    if (!silt_task_has(t, SILT_WORKER_WRAP)) {
        ret->name[0] = '.';
        return silt_task_open(t, t->path, O_PATH | O_DIRECTORY, 0, &ret->dir, e);
    }
    if (silt_path_at_find(t, t->path, 0, ret, e) < 0)
        return -1;
    errno = ENOENT;
    return silt_path_at_is_empty(ret) ? silt_fail_errno(e, "%s", t->path) : 0;
}

int silt_task_tar(struct silt_task *t, struct silt_error *e)
{
    char tar[] = "tar", zstd[] = "--zstd", how[] = "-cf", out[] = "-", names[] = "--";
    struct silt_program p = {.task = t, .pipe = -1, .err = -1};
    silt_auto_place what = {.dir = -1};
    char *const plain[] = {tar, how, out, names, what.name, NULL}, *const packed[] = {
                                                                       tar,   zstd,      how, out,
                                                                       names, what.name, NULL};
    if (find(t, &what, e) < 0 || silt_tar_check(t, e) < 0)
        return -1;
    int answer = silt_program_start(&p, silt_task_has(t, SILT_WORKER_ZSTD) ? packed : plain,
                                    what.dir, false, e);
    if (answer == 0)
        answer = pump(t, &p, e);
    silt_program_fini(&p);
    return answer;
}
