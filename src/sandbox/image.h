/* SPDX-License-Identifier: Apache-2.0 */
/* image: read-only root file systems by name. An import is fed from a stream of tar bytes, unpacked by
 * silt-fetch in its cage, and published in one step when all of it is there. */
#pragma once

#include "sandbox/registry.h"

struct silt_image {
    struct silt_link link;
    struct silt_image_row row;
};

void silt_image_add(struct silt_registry *r, const struct silt_image_row *row);
/* SILT_CONFLICT while sandboxes use its files. *ret_existed tells whether there was one. */
int silt_image_remove(struct silt_registry *r, silt_slice name, bool *ret_existed, struct silt_error *e);

/* The files of a digest go once nothing names or uses them any more. */
void silt_image_forget_unused(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
void silt_images_forget(struct silt_registry *r); /* the daemon ends: their memory goes */

struct silt_import;
struct silt_import_sink { /* borrowed: must outlive the import, or abort it */
    void (*drained)(struct silt_import_sink *sink); /* feed again */
    /* Exactly one of these two, once, last. */
    void (*done)(struct silt_import_sink *sink, const struct silt_image_row *row);
    void (*failed)(struct silt_import_sink *sink, const struct silt_error *e);
};
int silt_import_start(struct silt_registry *r, silt_slice name, bool host_usr, struct silt_import_sink *sink,
                      struct silt_import **ret, struct silt_error *e);
/* False: full, wait for drained (the bytes are taken all the same). */
bool silt_import_feed(struct silt_import *i, silt_slice bytes);
void silt_import_end(struct silt_import *i);   /* no more bytes */
/* The sink goes; nothing is published, unless that was under way already. */
void silt_import_abort(struct silt_import *i);
