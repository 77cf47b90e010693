/* SPDX-License-Identifier: Apache-2.0 */
/* wrangler: reads from wrangler.json or wrangler.jsonc in the current directory which size the
 * containers of an image get. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct silt_wrangler_size {
    const char *type;       /* an instance type of Silt; NULL: not set */
    uint64_t max_instances; /* 0: not set */
};

/* `tag` is the name of the image: cloudflare-dev/CLASS:… if wrangler builds it. Sets nothing
 * without a file; SILT_INVALID if it cannot be parsed. */
int silt_wrangler_size(struct silt_arena *a, const char *tag, struct silt_wrangler_size *ret,
                       struct silt_error *e);
/* Whether a container has an image that is not a file of this directory, so that wrangler pulls it.
 * The slice is in the arena. */
bool silt_wrangler_pulls(struct silt_arena *a, silt_slice *ret_image);
/* Replaces comments and trailing commas by spaces, which leaves plain JSON. */
void silt_wrangler_plain(char *text, size_t len);
