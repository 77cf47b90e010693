/* SPDX-License-Identifier: Apache-2.0 */
/* disk_pool: siltd's view of the disk pool. silt-priv's keeper writes the status to a file
 * (wire/pool.h); siltd reads that file and never blocks on the pool itself. A missing or old file
 * is a state of its own, not an error. */
#pragma once

#include "base/own.h"
#include "wire/pool.h"

#include <limits.h>
#include <stdbool.h>

enum { SILT_DISK_POOL_TEXT = 320 };

struct silt_disk_pool {
    char path[PATH_MAX]; /* <run>/pool; "": no keeper, as in tests */
};

void silt_disk_pool_init(struct silt_disk_pool *p, const char *run_dir);
/* The state may also be SILT_POOL_SILENT or _UNKNOWN; the numbers are then those of the last
 * report. */
void silt_disk_pool_look(const struct silt_disk_pool *p, struct silt_pool_status *ret);

const char *silt_disk_pool_name(const struct silt_pool_status *s); /* ok, low, full, ... */
/* True if nothing can be written to the pool. */
bool silt_disk_pool_is_down(const struct silt_pool_status *s);
/* Describes the problem and the remedy; "" if there is none. */
void silt_disk_pool_explain(const struct silt_pool_status *s, char text[SILT_DISK_POOL_TEXT]);
