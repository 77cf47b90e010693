/* SPDX-License-Identifier: Apache-2.0 */
/* image_config: what an image says about the commands in it: the "config" object of the OCI image format, read into a
 * view and written in one spelling, so that equal ones are equal texts. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>

enum { SILT_IMAGE_CONFIG_MAX = 256 << 10, SILT_IMAGE_WORDS_MAX = 4096 };

struct silt_image_words {
    silt_slice *items;
    size_t count;
    bool given; /* an empty list is not the same as none */
};

struct silt_label {
    silt_slice name, value;
};

/* All zero is an image that says nothing. Slices lie in the arena of whoever made it. */
struct silt_image_config {
    silt_slice env; /* NAME=value\0…, each name once */
    struct silt_image_words entrypoint, cmd, shell;
    struct silt_image_words ports; /* "80/tcp" */
    struct silt_label *labels;
    size_t label_count;
    silt_slice workdir, user, stop_signal; /* empty: not said */
};

/* Members that we do not know are left out. SILT_INVALID names the member. */
int silt_image_config_read(struct silt_arena *a, silt_slice json, struct silt_image_config *ret, struct silt_error *e);
void silt_image_config_write(struct silt_buf *b, const struct silt_image_config *c);
/* The value, or a slice whose data is NULL. */
silt_slice silt_image_config_label(const struct silt_image_config *c, silt_slice name);
/* Label silt.control is `builtin`: port 3000 of its containers is served by us. */
bool silt_image_config_is_builtin(const struct silt_image_config *c);
