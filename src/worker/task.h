/* SPDX-License-Identifier: Apache-2.0 */
/* task: one operation that siltd asked of a worker (wire/worker.h). A worker is a child of silt-init
 * with nothing of ours open but its socket; it runs as root of the sandbox, in the sandbox, so all
 * that it can reach is the guest's own. It may block, be killed at any time, and it tells the truth only
 * as far as the guest lets it. */
#pragma once

#include "base/own.h"
#include "base/slice.h"
#include "wire/worker.h"

#include <limits.h>
#include <sys/types.h>

struct silt_task {
    int sock; /* borrowed */
    uint32_t op;
    struct silt_worker_ask ask;
    char cwd[SILT_WORKER_PATH_MAX + 1];
    char path[SILT_WORKER_PATH_MAX + 1];
    char to[SILT_WORKER_PATH_MAX + 1];
    silt_slice text;
    silt_slice share; /* owned: siltd's memory, while an upload lies there */
    bool owes;        /* the word that a piece of it is used up */
    bool gone; /* siltd has closed its end: nothing more is to be said */
    bool told; /* the last frame has been sent */
    bool finishing; /* what it does now is done to the end, whether siltd is there or not */
    int64_t said_ms; /* when siltd heard of us last */
};

/* Serves until siltd closes its end. */
void silt_worker_serve(int sock);

/* Takes an ask apart: op, ask and the parts of the task, `text` borrowed from the frame. */
int silt_task_parse(struct silt_task *t, const struct silt_frame *f, size_t body_len, struct silt_error *e);

/* Operations, each ends with a frame that is the last, or fails with what the caller is told. */
typedef int silt_task_run(struct silt_task *t, struct silt_error *e);

/* Blocks until siltd takes it. False: siltd is gone. */
bool silt_task_say(struct silt_task *t, uint32_t type, uint32_t flags, silt_slice head, silt_slice tail);
bool silt_task_done(struct silt_task *t, const struct silt_worker_done *d);
/* The next bytes of an upload; they are valid until the next call. 1, 0: siltd is gone, or broke the contract. */
int silt_task_next(struct silt_task *t, silt_slice *ret, bool *ret_last);
/* For what runs long without saying anything: asks whether siltd is there, and tells it now and then that we are. */
bool silt_task_is_wanted(struct silt_task *t);

/* Where relative paths begin. */
int silt_task_base(const struct silt_task *t, int *ret_fd, struct silt_error *e);
/* Opens a path of the guest's: no magic links of /proc, never blocks on a FIFO or a device. */
int silt_task_open(const struct silt_task *t, const char *path, int flags, mode_t mode, int *ret_fd,
                   struct silt_error *e);

/* The file `path` of the task, if it is a regular one; the open and the look at it are of the same file. */
struct stat;
int silt_task_open_file(const struct silt_task *t, int flags, int *ret_fd, struct stat *ret_st,
                        struct silt_error *e);
int silt_check_regular(const struct stat *st, const char *path, struct silt_error *e);
/* The same from a folder, -1 with errno; `beneath` neither follows a link nor leaves the folder. */
int silt_open_at(int dir, const char *path, int flags, mode_t mode);
int silt_open_beneath(int dir, const char *path, int flags, mode_t mode);

static inline bool silt_task_has(const struct silt_task *t, uint32_t flag)
{
    return (t->ask.flags & flag) != 0;
}
