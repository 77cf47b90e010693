/* SPDX-License-Identifier: Apache-2.0 */
/* pool: what siltd knows of the disk pool: what silt-priv's keeper has written down (wire/pool.h).
 * siltd itself never waits for the pool. */
#pragma once

#include "base/own.h"
#include "wire/pool.h"

#include <limits.h>
#include <stdbool.h>

enum { SILT_POOL_TEXT = 320 };

struct silt_pool {
    char path[PATH_MAX]; /* <run>/pool; "": nobody looks after a pool, as in tests */
};

void silt_pool_init(struct silt_pool *p, const char *run_dir);
/* The state may also be SILT_POOL_SILENT or _UNKNOWN; the numbers are those of the last look then. */
void silt_pool_look(const struct silt_pool *p, struct silt_pool_status *ret);

const char *silt_pool_name(const struct silt_pool_status *s); /* ok, low, full, ... */
/* One that nothing can be written to. */
bool silt_pool_is_down(const struct silt_pool_status *s);
/* What is the matter and the way out; "" when all is well. */
void silt_pool_explain(const struct silt_pool_status *s, char text[SILT_POOL_TEXT]);
