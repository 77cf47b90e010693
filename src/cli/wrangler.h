/* SPDX-License-Identifier: Apache-2.0 */
/* wrangler: what the wrangler.json or wrangler.jsonc of this folder says about the containers of an image that wrangler builds. */
#pragma once

#include "base/arena.h"
#include "json/json.h"

struct silt_wrangler_size {
    const char *type;        /* an instance type of ours; NULL: nothing is said */
    uint64_t max_instances;  /* 0: nothing is said */
};

/* `tag` is the name the image gets: cloudflare-dev/CLASS:…, where wrangler builds. Without a file nothing is said; one that cannot be
 * read is SILT_INVALID. */
int silt_wrangler_size(struct silt_arena *a, const char *tag, struct silt_wrangler_size *ret, struct silt_error *e);
/* Whether a container there has an image that is no file of this folder: wrangler pulls it. The slice is of the arena. */
bool silt_wrangler_pulls(struct silt_arena *a, silt_slice *ret_image);
/* Comments and commas before a closing bracket become spaces: JSON is left. */
void silt_wrangler_plain(char *text, size_t len);
