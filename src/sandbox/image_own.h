/* SPDX-License-Identifier: Apache-2.0 */
/* image_own: what the files about images share with each other and nobody else. silt-priv's workers do not wait for
 * each other, so we do: files that are being forgotten are published again only when they are gone, and what is being
 * published is not forgotten. */
#pragma once

#include "sandbox/image.h"

void silt_seals_forget(struct silt_registry *r); /* the daemon ends: their memory goes */
bool silt_image_is_forgotten(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
bool silt_imports_publish(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_imports_on_forgotten(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_image_add_name(struct silt_image *i, const char *name); /* one that nobody has */
