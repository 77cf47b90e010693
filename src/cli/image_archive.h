/* SPDX-License-Identifier: Apache-2.0 */
/* image_archive: images that come and go as archives. */
#pragma once

#include "cli/client.h"

struct silt_image_archive {
    const char *name;   /* import: NULL: those that the archive tells */
    const char *path;   /* a file, `-`, or (import) the folder of an OCI layout */
    const char *image;  /* import: which one of the archive; NULL: the first */
    const char *format; /* NULL: import: found out; export: an OCI layout */
    bool as_docker;     /* what is told is told as docker does */
};

/* Prints its name and its digest. */
int silt_image_import(struct silt_client *c, const struct silt_image_archive *a, struct silt_error *e);
/* The file is there only when it is whole. */
int silt_image_export(struct silt_client *c, const struct silt_image_archive *a, struct silt_error *e);
