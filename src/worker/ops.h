/* SPDX-License-Identifier: Apache-2.0 */
/* ops: what a worker can do, one file per noun. */
#pragma once

#include "worker/task.h"

silt_task_run silt_task_stat; /* stat.c */

/* For whoever tells about a file. */
struct stat;
void silt_meta_of(const struct stat *st, struct silt_worker_meta *ret);
