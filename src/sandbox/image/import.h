/* SPDX-License-Identifier: Apache-2.0 */
/* import: creates an image from an archive that silt-fetch unpacks in its jail. The image is
 * published in one step once it is complete; a failed import leaves nothing. */
#pragma once

#include "sandbox/core/image.h"

extern const struct silt_facet silt_import_facet;

struct silt_import;
struct silt_import_sink { /* borrowed: must outlive the import, or abort it */
    void (*drained)(struct silt_import_sink *sink); /* feed again */
    /* Exactly one of these two is called, once, as the last callback. */
    void (*done)(struct silt_import_sink *sink, const struct silt_image *image, const char *name);
    void (*failed)(struct silt_import_sink *sink, const struct silt_error *e);
    uint64_t left_out; /* when done: device nodes omitted */
};
struct silt_import_options {
    const char *name; /* canonical; NULL: the archive's own names */
    /* From silt_image_config_write. NULL: the archive's; without one, that of an image with the
     * same files, or none. */
    const char *config;
    const char *image; /* which image of the archive; NULL: the first */
    enum silt_fetch_format format;
    bool host_usr;
    bool unnamed; /* instead of `name`: unless the sink's done holds it, it is removed */
};
int silt_import_start(struct silt_registry *r, const struct silt_import_options *o,
                      struct silt_import_sink *sink, struct silt_import **ret,
                      struct silt_error *e);
/* False: full, wait for drained; the bytes are accepted all the same. */
bool silt_import_feed(struct silt_import *i, silt_slice bytes);
void silt_import_end(struct silt_import *i); /* end of the archive */
/* Detaches the sink. Nothing is published, unless that is already in progress. */
void silt_import_abort(struct silt_import *i);
