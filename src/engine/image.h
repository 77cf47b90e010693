/* SPDX-License-Identifier: Apache-2.0 */
/* image: read-only root file systems, one folder each, named by digest, owned by the ids.images
 * range. One that is being unpacked is `.staging-<n>`, or `.root` when root itself does it (silt-trust); one that is
 * being deleted `.trash-<random>`; one that root's tree has replaced `.replaced-<random>`. */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <sys/types.h>

enum { SILT_IMAGE_NAME_SIZE = 2 * SILT_DIGEST_SIZE + 1 };

void silt_image_name(const uint8_t digest[SILT_DIGEST_SIZE], char name[SILT_IMAGE_NAME_SIZE]);
/* `images` is the folder of all of them, here and below. The descriptor is O_PATH. */
int silt_image_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_fd,
                    struct silt_error *e);
/* An empty staging folder; one of the same number goes to the trash. */
int silt_image_stage(int images, uint32_t staging, uid_t owner, int *ret_fd, struct silt_error *e);
/* The staging folder becomes the image, at once or not at all, also over a power cut. Fine when the
 * image exists: the staging folder goes. */
int silt_image_commit(int images, uint32_t staging, const uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_error *e);
int silt_image_discard(int images, uint32_t staging, struct silt_error *e);
int silt_image_forget(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
/* For silt-trust alone. An empty folder; it becomes the image whether there is one or not: what there was may be in use, and
 * stays, under another name, until silt_images_drop_replaced. */
int silt_image_begin(int images, uid_t owner, int *ret_fd, struct silt_error *e);
int silt_image_publish(int images, int tree, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
int silt_images_drop_begun(int images, struct silt_error *e);
/* When no sandbox runs. */
int silt_images_drop_replaced(int images, struct silt_error *e);
/* Deletes what was discarded and forgotten. */
int silt_images_empty_trash(int images, struct silt_error *e);
