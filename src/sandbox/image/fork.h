/* SPDX-License-Identifier: Apache-2.0 */
/* fork: makes sandboxes that begin with the files of another one, running or not, or of a snapshot.
 * All or none: they become visible to a restart together. Their files are the shared layer below an
 * empty one of their own; where the layers would become too many, a copy of the topmost one. A fork
 * is stopped until its first use. Runs in siltd. */
#pragma once

#include "sandbox/core/image.h"

enum {
    SILT_FORKS_MAX = 100,
    SILT_FORK_LAYERS_MAX = 16, /* half of what a mount takes: commits may add to it */
};

extern const struct silt_facet silt_fork_facet;

/* Once. `e` is NULL when all exist. */
typedef void silt_forked(void *context, const struct silt_error *e);

struct silt_fork_options {
    const char (*ids)[SILT_ID_MAX + 1];  /* checked, all different */
    size_t count;                        /* 1..SILT_FORKS_MAX */
    const struct silt_sandbox_row *like; /* what they are like; copied */
};

/* SILT_CONFLICT: an id is taken. A caller that leaves stops nothing. */
int silt_fork_sandbox(struct silt_sandbox *s, const struct silt_fork_options *o,
                      silt_forked *on_forked, void *context, struct silt_error *e);
int silt_fork_image(struct silt_image *i, const struct silt_fork_options *o, silt_forked *on_forked,
                    void *context, struct silt_error *e);
