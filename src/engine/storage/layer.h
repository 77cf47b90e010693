/* SPDX-License-Identifier: Apache-2.0 */
/* layer: the files of a sandbox at the time of a commit, a read-only btrfs snapshot `l/<digest>` of
 * its volume. Its parent is an image's tree or another layer. Entries not named by a digest are
 * being created or deleted.
 *
 *   upper/  the overlay's layer, in the ids of its writer
 *   note    ours: the parent, and the writer's first id */
#pragma once

#include "engine/storage/volume.h"
#include "wire/priv.h"

struct silt_layer {
    int upper;    /* directory, O_PATH */
    uint32_t ids; /* first id of the sandbox that wrote it */
};

/* An image: its tree, and its layers from top to bottom. */
struct silt_layers {
    int tree;                         /* directory, O_PATH */
    uint8_t bottom[SILT_DIGEST_SIZE]; /* the tree's own digest */
    struct silt_layer items[SILT_LAYERS_MAX];
    size_t count;
};

/* `images` is the directory of trees, here and below. For a tree without layers this is one system
 * call. */
int silt_layers_open(const struct silt_volumes *v, int images,
                     const uint8_t digest[SILT_DIGEST_SIZE], struct silt_layers *ret,
                     struct silt_error *e);
void silt_layers_close(struct silt_layers *l); /* fine if tree is -1 and count 0 */

struct silt_layer_seal {
    int volume;   /* the writer's; the sandbox may be running */
    uint32_t ids; /* the writer's first id */
    const uint8_t *digest, *parent;
    /* absolute paths to leave out, each NUL-terminated; symlinks in them are not followed */
    silt_slice left_out;
    bool soon; /* do not wait for the disk */
};
/* Atomic, even across a power failure. Waits for the disk, unless `soon`; then a power failure may
 * take it back. *ret_bytes: disk usage of the volume. */
int silt_layer_seal(const struct silt_volumes *v, int images, const struct silt_layer_seal *s,
                    uint64_t *ret_bytes, struct silt_error *e);
/* Nothing was written to the volume since the layer was made of it. May wait for the disk. */
bool silt_layer_is_current(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE],
                           int volume);
/* A writable snapshot of the layer, with its note: `name` below `dir`. SILT_NOT_FOUND: there is no
 * such layer. */
int silt_layer_copy(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE], int dir,
                    const char *name, struct silt_error *e);
/* The first id of the sandbox that wrote the layer of which `layer` is a copy. */
int silt_layer_writer(int layer, uint32_t *ret, struct silt_error *e);
/* Moves the layer to the trash, which the janitor empties. Succeeds if it does not exist. */
int silt_layer_forget(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_error *e);
/* Removes half-made layers whose maker died. */
int silt_layers_clear(const struct silt_volumes *v, struct silt_error *e);
