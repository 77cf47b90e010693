/* SPDX-License-Identifier: Apache-2.0 */
/* image: read-only root file systems, one directory each, named by digest and owned by the
 * ids.images range. `.staging-<n>` is being unpacked, `.root` is being unpacked by root itself
 * (silt-trust), `.trash-<random>` is being deleted, `.replaced-<random>` was replaced by root's
 * tree. Used by silt-priv and silt-trust. */
#pragma once

#include "base/error.h"
#include "wire/priv.h"

#include <sys/types.h>

enum { SILT_IMAGE_NAME_SIZE = 2 * SILT_DIGEST_SIZE + 1 };

void silt_image_name(const uint8_t digest[SILT_DIGEST_SIZE], char name[SILT_IMAGE_NAME_SIZE]);
/* `images` is the directory of all images, here and below. The descriptor is O_PATH. */
int silt_image_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_fd,
                    struct silt_error *e);
/* Creates an empty staging directory; an existing one of that number goes to the trash. */
int silt_image_stage(int images, uint32_t staging, uid_t owner, int *ret_fd, struct silt_error *e);
/* Turns the staging directory into the image, atomically, even across a power failure. If the image
 * exists already, succeeds and discards the staging directory. */
int silt_image_commit(int images, uint32_t staging, const uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_error *e);
int silt_image_discard(int images, uint32_t staging, struct silt_error *e);
int silt_image_forget(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
/* For silt-trust only: begin creates an empty directory, publish makes it the image. An existing
 * image may be in use, so it is kept under another name until silt_images_drop_replaced. */
int silt_image_begin(int images, uid_t owner, int *ret_fd, struct silt_error *e);
int silt_image_publish(int images, int tree, const uint8_t digest[SILT_DIGEST_SIZE],
                       struct silt_error *e);
int silt_images_drop_begun(int images, struct silt_error *e);
/* Only while no sandbox runs. */
int silt_images_drop_replaced(int images, struct silt_error *e);
/* Deletes discarded and forgotten images. */
int silt_images_empty_trash(int images, struct silt_error *e);
