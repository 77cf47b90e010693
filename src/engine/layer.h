/* SPDX-License-Identifier: Apache-2.0 */
/* layer: what a sandbox had written when it was sealed, a read-only btrfs snapshot `l/<digest>` of its volume with
 *     upper/  the overlay's layer, in the ids of its writer
 *     note    ours: what it lies on, and the writer's first id
 * It lies on an image's tree or on another layer. What is not named by a digest is being made or deleted. */
#pragma once

#include "engine/volume.h"
#include "wire/priv.h"

struct silt_layer {
    int upper;    /* folder, O_PATH */
    uint32_t ids; /* first id of its writer */
};

/* An image, from the bottom to the top: its tree, then layers, the uppermost one first. */
struct silt_layers {
    int tree; /* folder, O_PATH */
    uint8_t bottom[SILT_DIGEST_SIZE]; /* the tree's own digest */
    struct silt_layer items[SILT_LAYERS_MAX];
    size_t count;
};

/* `images` is the folder of trees, here and below. A tree alone costs one system call. */
int silt_layers_open(const struct silt_volumes *v, int images, const uint8_t digest[SILT_DIGEST_SIZE],
                     struct silt_layers *ret, struct silt_error *e);
void silt_layers_close(struct silt_layers *l); /* fine when all is -1 and 0 */

struct silt_layer_seal {
    int volume;   /* of the writer, which may be running */
    uint32_t ids; /* its first id */
    const uint8_t *digest, *parent;
};
/* At once or not at all, also over a power cut. Waits for the disk. *ret_bytes: what the volume occupies. */
int silt_layer_seal(const struct silt_volumes *v, int images, const struct silt_layer_seal *s, uint64_t *ret_bytes,
                    struct silt_error *e);
/* Out of the way at once, deleted by the janitor. Fine when it is not there. */
int silt_layer_forget(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
/* What was being sealed by somebody who is dead. */
int silt_layers_clear(const struct silt_volumes *v, struct silt_error *e);
