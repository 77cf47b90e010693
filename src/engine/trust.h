/* SPDX-License-Identifier: Apache-2.0 */
/* trust: for which images the machine's root has vouched, so that a Python may be kept warm in them with
 * the rights of the machine (engine/zygote.h). Beside the image's folder lies then a file <digest>.trusted,
 * which only root can make and which holds the number of that folder's inode. siltd names
 * the digest under which a tree is published and has images forgotten: so a digest says nothing of a tree,
 * only one that root has unpacked itself is marked (silt-trust), and the mark goes before the folder does. */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <stdbool.h>
#include <stddef.h>

#define SILT_TRUST_SUFFIX ".trusted"

/* `images` is the folder of all of them. The descriptor is that of the image that was vouched for, O_PATH.
 * SILT_DENIED: nobody has. */
int silt_trust_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_image, struct silt_error *e);
/* `tree` is the image's folder, held open since it was empty. */
int silt_trust_mark(int images, const uint8_t digest[SILT_DIGEST_SIZE], int tree, struct silt_error *e);
/* Fine when there is none. */
int silt_trust_end(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
/* How many were written. */
size_t silt_trust_list(int images, uint8_t (*ret)[SILT_DIGEST_SIZE], size_t max);
