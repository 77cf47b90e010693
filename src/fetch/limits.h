/* SPDX-License-Identifier: Apache-2.0 */
/* limits: how much a stranger may have us unpack. */
#pragma once

#include <stdint.h>

struct silt_archive_limits {
    uint64_t bytes;   /* of all files, unpacked */
    uint64_t entries; /* of all archives in it */
    uint64_t stream;  /* bytes read from the stream, packed */
    uint64_t ratio;   /* unpacked to packed, looked at from `free` bytes on */
    uint64_t free;
};

extern const struct silt_archive_limits silt_archive_defaults;
