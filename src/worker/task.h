/* SPDX-License-Identifier: Apache-2.0 */
/* task: one operation requested by siltd (wire/worker.h). A worker is a child of silt-init without
 * any descriptor of ours but its socket. It runs as the sandbox's root inside the sandbox, so it
 * can reach only what the guest can. It may block and be killed at any time, and the guest may
 * falsify its results. */
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
    silt_slice share; /* owned: siltd's shared memory, during an upload */
    bool owes;        /* TAKEN must be sent for a piece of it */
    bool gone;        /* siltd has closed its end: nothing more is sent */
    bool told;        /* the last frame was sent */
    bool finishing;   /* the current step is completed even if siltd is gone */
    int64_t said_ms;  /* when we last sent something to siltd */
};

/* Runs tasks until siltd closes its end. */
void silt_worker_serve(int sock);

/* Parses a request into op, ask and the task's parts; `text` is borrowed from the frame. */
int silt_task_parse(struct silt_task *t, const struct silt_frame *f, size_t body_len,
                    struct silt_error *e);

/* An operation. It ends by sending its last frame, or fails with the error to report. */
typedef int silt_task_run(struct silt_task *t, struct silt_error *e);

/* Blocks until siltd reads it. False: siltd is gone. */
bool silt_task_say(struct silt_task *t, uint32_t type, uint32_t flags, silt_slice head,
                   silt_slice tail);
bool silt_task_done(struct silt_task *t, const struct silt_worker_done *d);
/* The next bytes of an upload, valid until the next call. 1, or 0 if siltd is gone or violated the
 * protocol. */
int silt_task_next(struct silt_task *t, silt_slice *ret, bool *ret_last);
/* For long operations without output: checks whether siltd is still there, and sends it a sign of
 * life now and then. */
bool silt_task_is_wanted(struct silt_task *t);

/* The directory of relative paths. */
int silt_task_base(const struct silt_task *t, int *ret_fd, struct silt_error *e);
/* Opens a path of the guest: refuses magic links of /proc, never blocks on a FIFO or a device. */
int silt_task_open(const struct silt_task *t, const char *path, int flags, mode_t mode, int *ret_fd,
                   struct silt_error *e);

/* Opens the task's `path` if it is a regular file, checked on the opened descriptor. */
struct stat;
int silt_task_open_file(const struct silt_task *t, int flags, int *ret_fd, struct stat *ret_st,
                        struct silt_error *e);
int silt_check_regular(const struct stat *st, const char *path, struct silt_error *e);
/* The same relative to a directory, -1 with errno; `beneath` neither follows links nor leaves the
 * directory. */
int silt_open_at(int dir, const char *path, int flags, mode_t mode);
int silt_open_beneath(int dir, const char *path, int flags, mode_t mode);

static inline bool silt_task_has(const struct silt_task *t, uint32_t flag)
{
    return (t->ask.flags & flag) != 0;
}
