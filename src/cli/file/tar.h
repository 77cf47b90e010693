/* SPDX-License-Identifier: Apache-2.0 */
/* tar: packs and unpacks a directory of this machine with the machine's tar program. An archive to
 * unpack comes from a sandbox: its owners, setuid bits and device nodes are ignored, even for root;
 * tar itself keeps names inside the directory. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct silt_tar {
    pid_t pid;
    int fd;                /* pack: to read from; unpack: to write to */
    const char *directory; /* borrowed */
};

int silt_tar_pack(struct silt_tar *t, const char *directory, struct silt_error *e);
int silt_tar_unpack(struct silt_tar *t, const char *directory, struct silt_error *e);
/* Closes the descriptor and waits for tar, which reports its errors on standard error. */
int silt_tar_end(struct silt_tar *t, struct silt_error *e);
uint64_t silt_tar_size(const char *directory); /* an estimate of the archive's size */
