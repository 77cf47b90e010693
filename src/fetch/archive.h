/* SPDX-License-Identifier: Apache-2.0 */
/* archive: unpacks an untrusted archive into the current directory: a tar of a root file system, or
 * an image archive with layers (an OCI layout, or the output of `docker save`). The first name in
 * the archive decides which, unless the order does. Runs in silt-fetch. */
#pragma once

#include "base/buf.h"
#include "fetch/limits.h"
#include "wire/priv.h"

/* Reads `in` to its end; plain, gzip, zstd or xz. On success all of `ret` but `ok` is set, and
 * `said` holds the data that follows it: the image's configuration and names. Files written before
 * an error stay. The digest covers every byte of a root's tar, or the uncompressed contents of the
 * layers. */
int silt_archive_unpack(int in, const struct silt_fetch_order *order,
                        const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                        struct silt_buf *said, struct silt_error *e);
