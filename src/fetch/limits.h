/* SPDX-License-Identifier: Apache-2.0 */
/* limits: how much a stranger may have us unpack. */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct silt_archive_limits {
    uint64_t bytes;   /* of all files, unpacked */
    uint64_t entries; /* of all archives in it */
    uint64_t stream;  /* bytes read from the stream, packed */
    uint64_t ratio;   /* unpacked to packed, looked at from `free` bytes on */
    uint64_t free;
    uint64_t spare; /* bytes of the disk that stay free, or this part of it when that is less: */
    uint64_t spare_part;
};

/* SILT_NO_SPACE when less than that is free where the descriptor lies: others need some, too. */
int silt_limits_check_room(const struct silt_archive_limits *l, int fd, struct silt_error *e);

extern const struct silt_archive_limits silt_archive_defaults;
