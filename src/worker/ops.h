/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the operations of a worker, one file per noun. */
#pragma once

#include "worker/task.h"

#include <time.h>

silt_task_run silt_task_read;                                       /* read.c */
silt_task_run silt_task_write;                                      /* write.c */
silt_task_run silt_task_delete;                                     /* delete.c */
silt_task_run silt_task_move;                                       /* move.c */
silt_task_run silt_task_mkdir, silt_task_directory;                 /* directory.c */
silt_task_run silt_task_list;                                       /* list.c */
silt_task_run silt_task_stat;                                       /* stat.c */
silt_task_run silt_task_chmod, silt_task_chown, silt_task_truncate; /* change.c */
silt_task_run silt_task_symlink, silt_task_readlink;                /* link.c */
silt_task_run silt_task_search;                                     /* search.c */
silt_task_run silt_task_tar;                                        /* tar.c */
silt_task_run silt_task_untar;                                      /* untar.c */
silt_task_run silt_task_watch;                                      /* watch.c */
silt_task_run silt_task_port;                                       /* port.c */

/* Helpers for operations that describe a file. */
struct stat;
void silt_meta_of(const struct stat *st, struct silt_worker_meta *ret);
uint32_t silt_type_of(mode_t mode);    /* enum silt_worker_type */
int64_t silt_ns_of(struct timespec t); /* clamped to the range */

/* Removes dir/name recursively without following links; adds the number of removed entries to
 * *count. */
int silt_delete_tree(struct silt_task *t, int dir, const char *name, uint64_t *count,
                     struct silt_error *e);
/* Copies from_dir/from to to_dir/to, which must not exist: contents, modes, owners, times and
 * links. */
int silt_copy_tree(struct silt_task *t, int from_dir, const char *from, int to_dir, const char *to,
                   struct silt_error *e);
/* Checks that the image has the programs this task needs. */
int silt_tar_check(const struct silt_task *t, struct silt_error *e);
