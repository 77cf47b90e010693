/* SPDX-License-Identifier: Apache-2.0 */
/* image: the read-only root file systems that siltd knows. An image is identified by its digest and
 * has any number of names. It has files of its own (a tree, or a layer on its parent) or only
 * overrides its parent's configuration. Removing its last name removes it, unless a sandbox,
 * another image or a holder uses it. */
#pragma once

#include "sandbox/core/image_config.h"
#include "sandbox/core/registry.h"

enum { SILT_IMAGES_MAX = 16384, SILT_IMAGE_PREFIX_MIN = 12 };

struct silt_image {
    struct silt_link link;
    struct silt_registry *registry; /* borrowed */
    struct silt_image_row row;
    struct silt_arena arena;         /* backs config */
    struct silt_image_config config; /* row.config, parsed */
    struct silt_image *parent;       /* borrowed; NULL: none */
    uint32_t children;
    uint32_t holds;  /* silt_image_hold */
    uint32_t cached; /* cached build steps that led to it: it stays, but may lose its names */
    struct silt_link names;             /* struct silt_image_name */
    struct silt_snapshot_row *snapshot; /* whose files it holds: it stays; owned; NULL: none */
};

struct silt_image_name {
    struct silt_link link;
    struct silt_image *image;        /* borrowed */
    char text[SILT_IMAGE_NAME_SIZE]; /* canonical, see base/reference.h */
};

/* Looks up a name in any spelling, sha256:<hex>, or a unique prefix of a digest of twelve or more
 * digits; then the operator's name map (setting images.map). *ret_mapped (may be NULL): the map was
 * used. */
struct silt_image *silt_image_find(struct silt_registry *r, silt_slice reference, bool *ret_mapped);
/* True for the default image's names and those in the operator's map. A caller may assign them, an
 * archive may not. */
bool silt_image_is_reserved(const struct silt_registry *r, const char *name);
struct silt_image *silt_image_by_digest(const struct silt_registry *r,
                                        const uint8_t digest[SILT_DIGEST_SIZE]);
/* NULL only if the store has lost it. */
struct silt_image *silt_image_of(const struct silt_sandbox *s);
/* The digest silt-priv knows: that of the image whose files it uses. And of the tree at the
 * bottom. */
const uint8_t *silt_image_files(const struct silt_image *i);
const uint8_t *silt_image_tree(const struct silt_image *i);
uint64_t silt_image_bytes(const struct silt_image *i); /* including its parents */
/* A display name: its first name, or its digest. */
void silt_image_title(const struct silt_image *i, char ret[SILT_IMAGE_NAME_SIZE]);
/* The user commands run as (empty: root) and their initial directory (empty: /workspace). */
silt_slice silt_image_user(const struct silt_sandbox *s);
silt_slice silt_image_workdir(const struct silt_sandbox *s);

/* Takes row->config, as written by silt_image_config_write. The image has no name yet: to keep it,
 * tag or hold it. */
int silt_image_new(struct silt_registry *r, struct silt_image_row *row, struct silt_image **ret,
                   struct silt_error *e);
/* Returns an image with the same files and the given config: `from` itself or a child, which may
 * already exist. */
int silt_image_derive(struct silt_image *from, const char *config, bool host_usr,
                      struct silt_image **ret, struct silt_error *e);
/* `name` is canonical (base/reference.h); it is taken from any image that has it. */
int silt_image_tag(struct silt_registry *r, struct silt_image *i, const char *name,
                   struct silt_error *e);
/* Removes a name, and with the last name the image. SILT_CONFLICT if it is the last one and
 * sandboxes or holders use the image. *ret_existed: the name existed. */
int silt_image_untag(struct silt_registry *r, const char *name, bool *ret_existed,
                     struct silt_error *e);
void silt_image_hold(struct silt_image *i);
void silt_image_release(struct silt_image *i); /* may free it */

/* For the other files about images. silt-priv's workers do not serialize, so siltd does: files
 * being removed are published again only once they are gone, and files being published are not
 * removed. */
bool silt_image_is_forgotten(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_image_add_name(struct silt_image *i, const char *name); /* an unused name */

/* For this room: load the rows at start; remove the files of a digest once nothing names or uses
 * them. */
int silt_images_load(struct silt_registry *r, struct silt_error *e);
/* Removes those that a previous siltd did not get to. */
void silt_images_sweep(struct silt_registry *r);
void silt_image_forget_unused(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_images_forget(struct silt_registry *r); /* siltd is exiting: frees their memory */
/* Checks `repository=name` pairs separated by spaces; a repository may end in `*`, and tags are
 * ignored. */
int silt_image_check_map(silt_slice map, struct silt_error *e);
