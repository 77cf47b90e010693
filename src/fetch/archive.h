/* SPDX-License-Identifier: Apache-2.0 */
/* archive: a tar from a stranger becomes files in the current folder, or an error that names the
 * entry.
 *
 * Nothing is written outside the folder: no entry is absolute, climbs by `..`, passes through a
 * symbolic link or is a hard link to something else. Owners stay as numbers, modes and times stay;
 * extended attributes (file capabilities, overlay's marks) and device nodes are left out. */
#pragma once

#include "wire/priv.h"

struct silt_archive_limits {
    uint64_t bytes; /* of all files, unpacked */
    uint64_t entries;
    uint64_t stream; /* bytes read from the stream, packed */
};

extern const struct silt_archive_limits silt_archive_defaults;

/* Reads `in` to its end. plain, gzip or zstd. On success digest (of every byte of the stream),
 * bytes and entries of `ret` are set. What was written before an error stays. */
int silt_archive_unpack(int in, const struct silt_archive_limits *limits,
                        struct silt_fetch_result *ret, struct silt_error *e);
