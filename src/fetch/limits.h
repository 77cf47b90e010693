/* SPDX-License-Identifier: Apache-2.0 */
/* limits: how much an untrusted archive may unpack. */
#pragma once

#include "base/error.h"

#include <stdint.h>

struct silt_archive_limits {
    uint64_t bytes;   /* of all files, unpacked */
    uint64_t entries; /* of all archives in it */
    uint64_t stream;  /* compressed bytes read from the stream */
    uint64_t ratio;   /* unpacked to packed, checked after `free` bytes */
    uint64_t free;
    /* bytes of the disk that must stay free, or this fraction of it if that is less: */
    uint64_t spare;
    uint64_t spare_part;
};

/* SILT_NO_SPACE if less than that is free on the descriptor's file system. */
int silt_limits_check_room(const struct silt_archive_limits *l, int fd, struct silt_error *e);

extern const struct silt_archive_limits silt_archive_defaults;
