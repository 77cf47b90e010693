/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: the files of a sandbox at one point in time, with what is needed to make sandboxes of
 * it. The files are those of an image without a name, which the snapshot keeps (image->snapshot).
 * It outlives its sandbox and stops nothing in it. Runs in siltd. */
#pragma once

#include "sandbox/core/image.h"

enum {
    SILT_SNAPSHOTS_EACH_MAX = 1000, /* of one sandbox */
    SILT_AUTOMATIC_MAX = 50,        /* of one sandbox, beside the others */
};

extern const struct silt_facet silt_snapshot_facet;

struct silt_snapshot_options {
    silt_slice name; /* empty: none; at most SILT_SNAPSHOT_NAME_MAX bytes */
    int64_t ttl_s;   /* 0: it is kept until it is deleted */
    bool automatic;  /* the oldest ones go, and all with the sandbox */
    /* None is taken if nothing was written since this one; NULL: always. */
    const struct silt_image *since;
};

/* Once. `image` is NULL on failure, and so is `e` if nothing was written; image->snapshot is the
 * snapshot. */
typedef void silt_snapshot_taken(void *context, struct silt_image *image,
                                 const struct silt_error *e);
/* A caller that leaves sets nothing back: the snapshot is kept. */
int silt_snapshot_take(struct silt_sandbox *s, const struct silt_snapshot_options *o,
                       silt_snapshot_taken *on_taken, void *context, struct silt_error *e);
/* NULL: there is none. */
struct silt_image *silt_snapshot_find(const struct silt_registry *r, silt_slice id);
/* Its files go with the last sandbox that was made of it. */
int silt_snapshot_delete(struct silt_image *i, struct silt_error *e);
/* All that were kept before its commands. */
void silt_snapshots_delete_automatic(struct silt_registry *r, const char *sandbox);
