/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: a sandbox's root: the image, read-only and with its ids moved into the sandbox's range,
 * under the layer of what the sandbox has written. Mounted detached: it never appears in our own
 * mount table. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct silt_rootfs {
    int image;           /* folder, O_PATH, of a mount in our namespace */
    int volume;          /* folder with upper/ and work/ */
    uint32_t ids;        /* first id of the sandbox */
    uint32_t ids_images; /* first id of all images */
    bool ephemeral;      /* fsync does nothing, and unmounting waits for no disk */
};

/* *ret_layer is what the image was mounted as meanwhile: nobody needs it any more, but closing it
 * waits for a grace period (70 us), so the caller does that when nobody waits. */
int silt_rootfs_mount(const struct silt_rootfs *r, int *ret_mount, int *ret_layer,
                      struct silt_error *e);
/* The machine's /usr, read-only, its first 65,536 ids moved into the sandbox's range. */
int silt_rootfs_usr(uint32_t ids, int *ret_mount, struct silt_error *e);
