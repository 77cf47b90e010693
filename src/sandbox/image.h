/* SPDX-License-Identifier: Apache-2.0 */
/* image: read-only root file systems. An image is known by its digest and has any number of names; it has files of its
 * own (a tree, or a layer on those of its parent) or only says other things about its parent's. It goes with its last
 * name, unless a sandbox, another image or a holder uses it. An import is fed from an archive's bytes, unpacked by
 * silt-fetch in its cage, and published in one step when all of it is there. */
#pragma once

#include "sandbox/image_config.h"
#include "sandbox/registry.h"

enum { SILT_IMAGES_MAX = 16384, SILT_IMAGE_PREFIX_MIN = 12 };

struct silt_image {
    struct silt_link link;
    struct silt_registry *registry; /* borrowed */
    struct silt_image_row row;
    struct silt_arena arena;         /* of config */
    struct silt_image_config config; /* row.config as a view */
    struct silt_image *parent;       /* borrowed; NULL: none */
    uint32_t children;
    uint32_t holds; /* silt_image_hold */
    uint32_t cached; /* steps of builds that led to it: it stays, but may lose its names */
    struct silt_link names; /* struct silt_image_name */
};

struct silt_image_name {
    struct silt_link link;
    struct silt_image *image; /* borrowed */
    char text[SILT_IMAGE_NAME_SIZE]; /* as base/reference.h spells it */
};

/* By a name however it is spelled, by sha256:<hex>, by the first twelve or more digits of a digest that only one has; then
 * by the operator's map of names (setting images.map), of which *ret_mapped (may be NULL) tells. */
struct silt_image *silt_image_find(struct silt_registry *r, silt_slice reference, bool *ret_mapped);
/* One that sandboxes get without asking for it, or that the operator's map knows: only a caller gives it, no archive takes it. */
bool silt_image_is_reserved(const struct silt_registry *r, const char *name);
struct silt_image *silt_image_by_digest(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
/* Of a sandbox; NULL only if the store has lost it. */
struct silt_image *silt_image_of(const struct silt_sandbox *s);
/* Whose files it has: what silt-priv knows. And the tree at the bottom of them. */
const uint8_t *silt_image_files(const struct silt_image *i);
const uint8_t *silt_image_tree(const struct silt_image *i);
uint64_t silt_image_bytes(const struct silt_image *i); /* with its parents' */
/* A name for people: its first one, or its digest. */
void silt_image_title(const struct silt_image *i, char ret[SILT_IMAGE_NAME_SIZE]);
/* Whom commands run as; empty: root. The directory they begin in; empty: /workspace. */
silt_slice silt_image_user(const struct silt_sandbox *s);
silt_slice silt_image_workdir(const struct silt_sandbox *s);

/* Takes row->config, which silt_image_config_write has written. It has no name yet: whoever wants it to stay gives it one,
 * or holds it. */
int silt_image_new(struct silt_registry *r, struct silt_image_row *row, struct silt_image **ret, struct silt_error *e);
/* The image with these files that says `config`: itself, or a child, which may exist already. */
int silt_image_derive(struct silt_image *from, const char *config, bool host_usr, struct silt_image **ret,
                      struct silt_error *e);
/* `name` is spelled as base/reference.h does; another image that has it loses it. */
int silt_image_tag(struct silt_registry *r, struct silt_image *i, const char *name, struct silt_error *e);
/* The name goes, and the image with its last one. SILT_CONFLICT while it is the last one and sandboxes or holders use the
 * image. *ret_existed tells whether there was one. */
int silt_image_untag(struct silt_registry *r, const char *name, bool *ret_existed, struct silt_error *e);
void silt_image_hold(struct silt_image *i);
void silt_image_release(struct silt_image *i); /* it may be gone then */

/* For this room: rows at start; the files of a digest go once nothing names or uses them any more. */
int silt_images_load(struct silt_registry *r, struct silt_error *e);
void silt_images_sweep(struct silt_registry *r); /* those that a former siltd did not come to remove */
void silt_image_forget_unused(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_images_forget(struct silt_registry *r); /* the daemon ends: their memory goes */
/* `repository=name` and so on, separated by spaces; a repository may end in `*`, its tag does not matter. */
int silt_image_check_map(silt_slice map, struct silt_error *e);

/* What a sandbox has written, running or stopped, becomes an image on top of its own. */
struct silt_seal;
struct silt_seal_options {
    const char *config; /* as silt_image_config_write writes it; NULL: that of the sandbox's image */
    const char *const *names; /* in their one spelling */
    size_t name_count;
};
/* Once. `image` is NULL on failure. One without a name goes unless the callee holds it. */
typedef void silt_image_sealed(void *context, struct silt_image *image, const struct silt_error *e);
int silt_image_seal(struct silt_sandbox *s, const struct silt_seal_options *o, silt_image_sealed *on_sealed, void *context,
                    struct silt_seal **ret, struct silt_error *e);
void silt_seal_leave(struct silt_seal *s); /* nobody is told; the image goes, unless it got a name */

struct silt_import;
struct silt_import_sink { /* borrowed: must outlive the import, or abort it */
    void (*drained)(struct silt_import_sink *sink); /* feed again */
    /* Exactly one of these two, once, last. */
    void (*done)(struct silt_import_sink *sink, const struct silt_image *image, const char *name);
    void (*failed)(struct silt_import_sink *sink, const struct silt_error *e);
    uint64_t left_out; /* when done: device nodes that are not in it */
};
struct silt_import_options {
    const char *name;   /* in its one spelling; NULL: those that the archive tells */
    const char *config; /* as silt_image_config_write writes it; NULL: what the archive says, or none, or what the image of these
                           files says */
    const char *image;  /* which one of the archive; NULL: the first */
    enum silt_fetch_format format;
    bool host_usr;
    bool unnamed; /* instead of `name`: who hears that it is done holds it, or it goes */
};
int silt_import_start(struct silt_registry *r, const struct silt_import_options *o, struct silt_import_sink *sink,
                      struct silt_import **ret, struct silt_error *e);
/* False: full, wait for drained (the bytes are taken all the same). */
bool silt_import_feed(struct silt_import *i, silt_slice bytes);
void silt_import_end(struct silt_import *i);   /* no more bytes */
/* The sink goes; nothing is published, unless that was under way already. */
void silt_import_abort(struct silt_import *i);

struct silt_export;
struct silt_export_sink { /* borrowed: must outlive the export, or abort it */
    void (*bytes)(struct silt_export_sink *sink, silt_slice bytes); /* may pause it */
    /* Once, last. `e` is NULL when the archive is whole. */
    void (*done)(struct silt_export_sink *sink, const struct silt_error *e);
};
struct silt_export_options {
    const char *name; /* that the archive tells; empty: none */
    enum silt_fetch_format format;
};
/* Not of one with the machine's /usr: that is not in it. */
int silt_export_start(struct silt_image *i, const struct silt_export_options *o, struct silt_export_sink *sink,
                      struct silt_export **ret, struct silt_error *e);
void silt_export_pause(struct silt_export *x, bool paused);
void silt_export_abort(struct silt_export *x); /* the sink goes */
