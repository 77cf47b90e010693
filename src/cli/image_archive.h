/* SPDX-License-Identifier: Apache-2.0 */
/* image_archive: images that come from elsewhere as archives. */
#pragma once

#include "cli/client.h"

struct silt_image_archive {
    const char *name;   /* NULL: those that the archive tells */
    const char *path;   /* a file, `-`, or the folder of an OCI layout */
    const char *image;  /* which one of the archive; NULL: the first */
    const char *format; /* NULL: found out */
};

/* Prints its name and its digest. */
int silt_image_import(struct silt_client *c, const struct silt_image_archive *a, struct silt_error *e);
