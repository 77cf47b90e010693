/* SPDX-License-Identifier: Apache-2.0 */
/* export: streams an image as an archive. silt-fetch packs it in its jail; siltd passes the bytes
 * to the sink, as fast as it takes them. An archive that is cut short is reported by `done`. */
#pragma once

#include "sandbox/core/image.h"

struct silt_export;
struct silt_export_sink { /* borrowed: must outlive the export, or abort it */
    void (*bytes)(struct silt_export_sink *sink, silt_slice bytes); /* may pause it */
    /* Once, last. `e` is NULL if the archive is complete. */
    void (*done)(struct silt_export_sink *sink, const struct silt_error *e);
};
struct silt_export_options {
    const char *name; /* name written into the archive; empty: none */
    enum silt_fetch_format format;
};
/* Refuses images that use the machine's /usr, since the archive would lack it. */
int silt_export_start(struct silt_image *i, const struct silt_export_options *o,
                      struct silt_export_sink *sink, struct silt_export **ret,
                      struct silt_error *e);
void silt_export_pause(struct silt_export *x, bool paused);
void silt_export_abort(struct silt_export *x); /* detaches the sink */
