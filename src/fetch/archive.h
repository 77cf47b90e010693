/* SPDX-License-Identifier: Apache-2.0 */
/* archive: what a stranger packed becomes the files of an image in the current folder: a tar of a
 * root, or layers in an archive of an image (an OCI layout, what `docker save` writes). The first
 * name in it tells which, unless the order does. */
#pragma once

#include "base/buf.h"
#include "fetch/limits.h"
#include "wire/priv.h"

/* Reads `in` to its end. plain, gzip, zstd or xz. On success `ret` is set but for `ok`, and `said` holds
 * what follows it: the image's configuration and its names. What was written before an error stays.
 * The digest is of every byte of a root's tar, else of the layers' contents, whatever they came in. */
int silt_archive_unpack(int in, const struct silt_fetch_order *order,
                        const struct silt_archive_limits *limits, struct silt_fetch_result *ret,
                        struct silt_buf *said, struct silt_error *e);
