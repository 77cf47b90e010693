/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: the process of silt-priv that looks after the disk pool. Several times a second it measures
 * the room, lets the pool file grow ahead of its use, bounds what all sandboxes may still write, and
 * writes down how the pool is doing (wire/pool.h). It waits for the disk, so that nobody else has
 * to, and keeps nothing that a successor would need. */
#pragma once

#include "engine/pool_file.h"
#include "engine/volume.h"

struct silt_keeper {
    struct silt_pool_file file;
    int status; /* <run>/pool */
    uint64_t max, reserve;
};

/* Asks for folders of the machine, so before the stage is set. */
int silt_keeper_open(struct silt_keeper *k, const char *state_dir, const char *run_dir, uint64_t max,
                     uint64_t reserve, struct silt_error *e);
void silt_keeper_close(struct silt_keeper *k);
/* Until the process is ended. */
_Noreturn void silt_keeper_run(struct silt_keeper *k, const struct silt_volumes *v);
