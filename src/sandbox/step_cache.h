/* SPDX-License-Identifier: Apache-2.0 */
/* step_cache: which image a step of a Dockerfile led to, by all that it depends on. An image that is remembered here stays; the
 * step that was not used for longest goes when there are too many. */
#pragma once

#include "sandbox/image.h"

struct silt_image *silt_step_cache_find(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE]);
void silt_step_cache_put(struct silt_registry *r, const uint8_t key[SILT_DIGEST_SIZE], struct silt_image *i);
size_t silt_step_cache_clear(struct silt_registry *r); /* how many there were */
/* The disk is full, or nearly: sandboxes need the room more. Results stay, for somebody knows them. */
void silt_step_cache_make_room(struct silt_registry *r);
int silt_step_cache_load(struct silt_registry *r, struct silt_error *e);
void silt_step_cache_forget(struct silt_registry *r); /* the daemon ends: its memory goes */
