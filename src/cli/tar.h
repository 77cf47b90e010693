/* SPDX-License-Identifier: Apache-2.0 */
/* tar: a folder of this machine as a stream of bytes, packed and unpacked by the machine's tar
 * program. What is unpacked comes from a sandbox: it gets neither owners nor setuid bits nor device
 * nodes of its choosing, also when root runs this; tar itself keeps names inside the folder. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct silt_tar {
    pid_t pid;
    int fd;             /* pack: to read from; unpack: to write to */
    const char *folder; /* borrowed */
};

int silt_tar_pack(struct silt_tar *t, const char *folder, struct silt_error *e);
int silt_tar_unpack(struct silt_tar *t, const char *folder, struct silt_error *e);
/* Closes the descriptor and waits; tar has told on standard error what it could not do. */
int silt_tar_end(struct silt_tar *t, struct silt_error *e);
uint64_t silt_tar_size(const char *folder); /* about what packing will give */
