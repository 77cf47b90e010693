/* SPDX-License-Identifier: Apache-2.0 */
/* pool_file: `<state>/pool.img`, the file below a pool whose state folder is not on btrfs. What btrfs
 * has been promised is allocated: a write that the disk below has no room for would turn the whole
 * pool read-only. So the file begins small and grows in steps, ahead of its use, up to `max`, as
 * long as `reserve` bytes of the disk stay free for everybody else. silt-super makes it; the keeper
 * of silt-priv lets it grow while the pool is mounted. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct silt_pool_file {
    int image;
    int loop;
    uint64_t max, reserve;
    bool checked; /* holes of a former version are filled */
};

/* A new file gets the least that holds a file system. SILT_NO_SPACE: the disk does not have it. */
int silt_pool_file_begin(int image, uint64_t max, struct silt_error *e);

/* The file of a mounted pool; `ret->image` is -1 where the pool has none. */
int silt_pool_file_open(const char *state_dir, uint64_t max, uint64_t reserve,
                        struct silt_pool_file *ret, struct silt_error *e);
void silt_pool_file_close(struct silt_pool_file *f);

/* What the disk below has left, and how much of that is more than the reserve. */
uint64_t silt_pool_file_disk_free(int fd);
/* How much unallocated room the pool shall have at least, while it may grow. */
uint64_t silt_pool_file_ahead(uint64_t max);

/* One step, at most a gibibyte: `pool` is the mounted file system. *ret_more: call again soon. */
int silt_pool_file_tend(struct silt_pool_file *f, int pool, bool *ret_more, struct silt_error *e);
