/* SPDX-License-Identifier: Apache-2.0 */
/* image_archive: imports and exports images as archives. */
#pragma once

#include "cli/core/client.h"

struct silt_image_archive {
    const char *name;   /* import: NULL: the names in the archive */
    const char *path;   /* a file, `-`, or (import) the directory of an OCI layout */
    const char *image;  /* import: which image of the archive; NULL: the first */
    const char *format; /* NULL: detected (import), OCI layout (export) */
    bool as_docker;     /* print messages as docker does */
};

/* Prints the name and the digest. */
int silt_image_import(struct silt_client *c, const struct silt_image_archive *a,
                      struct silt_error *e);
/* The file appears only when it is complete. */
int silt_image_export(struct silt_client *c, const struct silt_image_archive *a,
                      struct silt_error *e);
