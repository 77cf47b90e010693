/* SPDX-License-Identifier: Apache-2.0 */
/* image_config: an image's defaults for its commands: the "config" object of the OCI image format,
 * parsed into a view. It is written in one canonical form, so that equal configurations are equal
 * strings. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

enum { SILT_IMAGE_CONFIG_MAX = 256 << 10, SILT_IMAGE_WORDS_MAX = 4096 };

struct silt_image_words {
    silt_slice *items;
    size_t count;
    bool given; /* an empty list differs from a missing one */
};

struct silt_label {
    silt_slice name, value;
};

/* All zero: an image without configuration. Slices point into the caller's arena. */
struct silt_image_config {
    silt_slice env; /* NAME=value\0…, each name once */
    struct silt_image_words entrypoint, cmd, shell;
    struct silt_image_words ports; /* "80/tcp" */
    struct silt_label *labels;
    size_t label_count;
    silt_slice workdir, user, stop_signal; /* empty: not set */
};

/* Unknown members are dropped. The text of SILT_INVALID names the bad member. */
int silt_image_config_read(struct silt_arena *a, silt_slice json, struct silt_image_config *ret,
                           struct silt_error *e);
void silt_image_config_write(struct silt_buf *b, const struct silt_image_config *c);
/* The value, or a slice with data NULL. */
silt_slice silt_image_config_label(const struct silt_image_config *c, silt_slice name);
/* True if label silt.control is `builtin`: siltd itself serves port 3000 of its containers. */
bool silt_image_config_is_builtin(const struct silt_image_config *c);
