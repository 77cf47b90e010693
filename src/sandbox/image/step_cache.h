/* SPDX-License-Identifier: Apache-2.0 */
/* step_cache: maps the hash of everything a Dockerfile step depends on to the image it produced. A
 * cached image is kept; when the cache is full, the least recently used step is dropped. Owned by
 * the registry. */
#pragma once

#include "sandbox/core/image.h"

struct silt_image *silt_step_cache_find(struct silt_registry *r,
                                        const uint8_t key[SILT_DIGEST_SIZE]);
void silt_step_cache_put(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE],
                         struct silt_image *i);
size_t silt_step_cache_clear(struct silt_registry *r); /* returns how many there were */
extern const struct silt_facet silt_step_cache_facet;
