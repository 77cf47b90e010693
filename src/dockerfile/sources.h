/* SPDX-License-Identifier: Apache-2.0 */
/* sources: the patterns of all files of the build context that a Dockerfile can use: sources of
 * COPY and ADD, and of RUN --mount=type=bind. The command line sends only matching files. A pattern
 * may match more than the build needs, never less; where that cannot be guaranteed, the whole
 * context is sent. Pure. */
#pragma once

#include "dockerfile/dockerfile.h"

enum { SILT_DOCKER_SOURCES_MAX = 128 };

struct silt_docker_sources {
    bool all;           /* any file of the context may be used */
    uint32_t line;      /* of the instruction that needs the whole context; 0: none */
    const char *reason; /* why it does; static */
    silt_slice
        patterns[SILT_DOCKER_SOURCES_MAX]; /* names separated by single slashes; `*` matches any
                                              part of a name, other bytes match themselves */
    size_t count;
};

/* The patterns lie in the arena. */
void silt_docker_sources_read(struct silt_arena *a, const struct silt_dockerfile *f,
                              struct silt_docker_sources *ret);
