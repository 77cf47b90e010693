/* SPDX-License-Identifier: Apache-2.0 */
/* rootfs: mounts a sandbox's root: the image and its layers, read-only and idmapped into the
 * sandbox's range, below the sandbox's writable layer. Mounted detached: it never appears in our
 * own mount table. Runs in silt-priv's workers. */
#pragma once

#include "engine/storage/layer.h"

#include <stdbool.h>
#include <stdint.h>

struct silt_rootfs {
    const struct silt_layers *image; /* of mounts in our namespace */
    int volume;                      /* directory with upper/ and work/ */
    uint32_t ids;                    /* first id of the sandbox */
    uint32_t ids_images;             /* first id of all images */
    bool ephemeral; /* fsync does nothing, and unmounting does not wait for the disk */
};

/* `later` receives temporary mounts of the image that are no longer needed. Closing each waits for
 * an RCU grace period (70 us), so the caller closes them after it has answered, also when this
 * fails. */
int silt_rootfs_mount(const struct silt_rootfs *r, int *ret_mount, int later[SILT_LAYERS_MAX + 1],
                      size_t *ret_later, struct silt_error *e);
/* Mounts the image and its layers without a sandbox: read-only, in the id range of images. */
int silt_rootfs_view(const struct silt_layers *image, uint32_t ids_images, int *ret_mount,
                     struct silt_error *e);
/* Mounts the machine's /usr read-only, its first 65,536 ids mapped into the sandbox's range. */
int silt_rootfs_usr(uint32_t ids, int *ret_mount, struct silt_error *e);
