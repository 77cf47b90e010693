/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: the process of silt-priv that manages the disk pool. Several times a second it measures
 * the free space, grows the pool file ahead of its use, limits what all sandboxes may still write,
 * and writes the pool's status to a file (wire/pool.h). It may block on the disk so that no other
 * process has to. It keeps no state that its successor would need. */
#pragma once

#include "engine/storage/pool_file.h"
#include "engine/storage/volume.h"

struct silt_keeper {
    struct silt_pool_file file;
    int status; /* <run>/pool */
    uint64_t max, reserve;
};

/* Needs directories of the machine, so call it before silt_mount_stage_enter. */
int silt_keeper_open(struct silt_keeper *k, const char *state_dir, const char *run_dir,
                     uint64_t max, uint64_t reserve, struct silt_error *e);
void silt_keeper_close(struct silt_keeper *k);
/* Runs until the process is killed. */
_Noreturn void silt_keeper_run(struct silt_keeper *k, const struct silt_volumes *v);
