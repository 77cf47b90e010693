/* SPDX-License-Identifier: Apache-2.0 */
/* pool_file: `<state>/pool.img`, which holds the pool when the state directory is not on btrfs.
 * Every block that btrfs may use is allocated: a write that the disk below has no space for would
 * turn the whole pool read-only. So the file starts small and grows in steps, ahead of its use, up
 * to `max`, while `reserve` bytes of the disk stay free. silt-super creates it; silt-priv's keeper
 * grows it while the pool is mounted. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct silt_pool_file {
    int image;
    int loop;
    uint64_t max, reserve;
    bool checked; /* holes left by a former version are filled */
};

/* Allocates the minimum size of a file system. SILT_NO_SPACE: the disk is too full. */
int silt_pool_file_begin(int image, uint64_t max, struct silt_error *e);

/* Opens the file of a mounted pool; `ret->image` is -1 if the pool has no file. */
int silt_pool_file_open(const char *state_dir, uint64_t max, uint64_t reserve,
                        struct silt_pool_file *ret, struct silt_error *e);
void silt_pool_file_close(struct silt_pool_file *f);

/* Free bytes of the disk below. */
uint64_t silt_pool_file_disk_free(int fd);
/* How much unallocated space the pool should have while it may grow. */
uint64_t silt_pool_file_ahead(uint64_t max);

/* Grows the file by one step of at most 1 GiB; `pool` is the mounted file system. *ret_more: call
 * again soon. */
int silt_pool_file_tend(struct silt_pool_file *f, int pool, bool *ret_more, struct silt_error *e);
