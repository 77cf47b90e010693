/* SPDX-License-Identifier: Apache-2.0 */
/* seal: makes an image from a sandbox, running or stopped: what it has written, as a layer on its
 * own image. silt-priv takes the snapshot; the callback reports success or failure. */
#pragma once

#include "sandbox/core/image.h"

extern const struct silt_facet silt_seal_facet;

struct silt_seal;
struct silt_seal_options {
    /* From silt_image_config_write; NULL: the configuration of the sandbox's image. */
    const char *config;
    const char *const *names; /* canonical */
    size_t name_count;
    silt_slice left_out;  /* absolute paths, each NUL-terminated, excluded from the image */
    bool soon;            /* a power failure in the next seconds may lose it */
    const uint8_t *since; /* no image if nothing was written since this layer; NULL: always */
};
/* Once. `image` is NULL on failure, and so is `e` if nothing was written. Unless the callback holds
 * it, an image without a name is removed. */
typedef void silt_image_sealed(void *context, struct silt_image *image, const struct silt_error *e);
int silt_image_seal(struct silt_sandbox *s, const struct silt_seal_options *o,
                    silt_image_sealed *on_sealed, void *context, struct silt_seal **ret,
                    struct silt_error *e);
/* Cancels the callback; the image is removed unless it got a name. */
void silt_seal_leave(struct silt_seal *s);
