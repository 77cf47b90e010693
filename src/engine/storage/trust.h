/* SPDX-License-Identifier: Apache-2.0 */
/* trust: which images the machine's root trusts, so that a warm Python may run in them with the
 * machine's rights (engine/launch/zygote.h). A file <digest>.trusted beside the image's directory
 * marks it; only root can create it, and it holds the directory's inode number. siltd chooses the
 * digest under which a tree is published and can have images deleted, so a digest proves nothing
 * about a tree: silt-trust marks only trees that root unpacked itself, and the mark is removed
 * before the directory. */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <stdbool.h>
#include <stddef.h>

#define SILT_TRUST_SUFFIX ".trusted"

/* `images` is the directory of all images. Returns an O_PATH descriptor of the trusted image.
 * SILT_DENIED: the image is not trusted. */
int silt_trust_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_image,
                    struct silt_error *e);
/* `tree` is the image's directory, held open since it was empty. */
int silt_trust_mark(int images, const uint8_t digest[SILT_DIGEST_SIZE], int tree,
                    struct silt_error *e);
/* Fine if there is no mark. */
int silt_trust_end(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
/* Returns the number of digests written. */
size_t silt_trust_list(int images, uint8_t (*ret)[SILT_DIGEST_SIZE], size_t max);
