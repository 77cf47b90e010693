/* SPDX-License-Identifier: Apache-2.0 */
/* wanted: the part of a build context that its Dockerfile can use, decided name by name on the way
 * down. Whoever walks the folder asks at each entry, with what was answered for the folder around
 * it. */
#pragma once

#include "dockerfile/sources.h"

struct silt_wanted {
    bool all; /* everything below is */
    silt_slice rest[SILT_DOCKER_SOURCES_MAX
                    + 1]; /* of the patterns that led here: names below; borrowed */
    size_t count;
};

/* For the context itself. `also`: a path that is wanted in any case; "": none. */
void silt_wanted_begin(struct silt_wanted *w, const struct silt_docker_sources *sources,
                       const char *also);
/* For an entry of the folder. False: neither it nor anything below. */
bool silt_wanted_enter(const struct silt_wanted *w, const char *name, struct silt_wanted *ret);
/* Whether a symbolic link lies where a pattern leads, or the folder cannot be read: what a link
 * stands for may be anywhere. */
bool silt_wanted_has_links(const struct silt_wanted *w, int folder);
