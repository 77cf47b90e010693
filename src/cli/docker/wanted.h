/* SPDX-License-Identifier: Apache-2.0 */
/* wanted: decides which entries of a build context its Dockerfile can use. The caller walks the
 * directory and asks at each entry, passing the result for its parent. */
#pragma once

#include "dockerfile/sources.h"

struct silt_wanted {
    bool all; /* everything below is wanted */
    silt_slice rest[SILT_DOCKER_SOURCES_MAX
                    + 1]; /* the rest of the patterns that match so far; borrowed */
    size_t count;
};

/* For the context itself. `also`: a path that is always wanted, or "". */
void silt_wanted_begin(struct silt_wanted *w, const struct silt_docker_sources *sources,
                       const char *also);
/* For an entry of the directory. False: neither the entry nor anything below it is wanted. */
bool silt_wanted_enter(const struct silt_wanted *w, const char *name, struct silt_wanted *ret);
/* Whether a pattern leads through a symbolic link, whose target may be anywhere. Also true if the
 * directory cannot be read. */
bool silt_wanted_has_links(const struct silt_wanted *w, int directory);
