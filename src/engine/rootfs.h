/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: a sandbox's root: the image with its layers, read-only and with their ids moved into the sandbox's range,
 * under the layer of what the sandbox has written. Mounted detached: it never appears in our own
 * mount table. */
#pragma once

#include "engine/layer.h"

#include <stdbool.h>
#include <stdint.h>

struct silt_rootfs {
    const struct silt_layers *image; /* of mounts in our namespace */
    int volume;          /* folder with upper/ and work/ */
    uint32_t ids;        /* first id of the sandbox */
    uint32_t ids_images; /* first id of all images */
    bool ephemeral;      /* fsync does nothing, and unmounting waits for no disk */
};

/* `later` is what the image was mounted as meanwhile: nobody needs it any more, but closing each
 * waits for a grace period (70 us), so the caller does that when nobody waits: also when this fails. */
int silt_rootfs_mount(const struct silt_rootfs *r, int *ret_mount, int later[SILT_LAYERS_MAX + 1], size_t *ret_later,
                      struct silt_error *e);
/* The image alone, with its layers, read-only, its ids in the range of images. */
int silt_rootfs_view(const struct silt_layers *image, uint32_t ids_images, int *ret_mount, struct silt_error *e);
/* The machine's /usr, read-only, its first 65,536 ids moved into the sandbox's range. */
int silt_rootfs_usr(uint32_t ids, int *ret_mount, struct silt_error *e);
