/* SPDX-License-Identifier: Apache-2.0 */
/* manifest: parses the JSON documents of an image archive: which files are its configuration and
 * layers, and the image's names. They are untrusted: sizes are bounded, and missing fields, wrong
 * types or another architecture are errors. */
#pragma once

#include "base/buf.h"
#include "base/reference.h"
#include "wire/priv.h"

enum {
    SILT_MANIFEST_MAX = 4 << 20, /* bytes of one document; of a configuration: */
    SILT_MANIFEST_CONFIG_MAX = 1 << 20,
    SILT_MANIFEST_SAID_MAX = 256 << 10, /* of the part we keep */
    SILT_MANIFEST_LAYERS_MAX = 128,
    SILT_MANIFEST_NAMES_MAX = 16,
    SILT_BLOB_PATH_SIZE = 256,
};

/* A file of the archive. */
struct silt_blob {
    char path[SILT_BLOB_PATH_SIZE];
    uint64_t size; /* UINT64_MAX: not given */
};

struct silt_manifest {
    struct silt_blob config;
    struct silt_blob layers[SILT_MANIFEST_LAYERS_MAX];
    size_t layer_count;
    char names[SILT_MANIFEST_NAMES_MAX][SILT_REFERENCE_SIZE]; /* normalized */
    size_t name_count;
};

struct silt_manifest_config {
    uint8_t diffs[SILT_MANIFEST_LAYERS_MAX][SILT_DIGEST_SIZE]; /* of the uncompressed layers */
    size_t count;
};

/* Finds the manifest in an index that `image` names (empty: the first) and that runs on this
 * machine. Adds its names. */
int silt_manifest_read_index(silt_slice json, const char *image, struct silt_manifest *m,
                             struct silt_blob *ret, struct silt_error *e);
/* *ret_index: the document is an index itself; then nothing is set. */
int silt_manifest_read_oci(silt_slice json, struct silt_manifest *m, bool *ret_index,
                           struct silt_error *e);
/* manifest.json of `docker save`. */
int silt_manifest_read_docker(silt_slice json, const char *image, struct silt_manifest *m,
                              struct silt_error *e);
/* Appends the fields that concern commands to `said`, as JSON. */
int silt_manifest_read_config(silt_slice json, struct silt_manifest_config *ret,
                              struct silt_buf *said, struct silt_error *e);
