/* SPDX-License-Identifier: Apache-2.0 */
/* sources: the patterns by which a Dockerfile can name files of its build context: the sources of
 * COPY and ADD, and of RUN --mount=type=bind. The command line sends only what they match. A
 * pattern may match more than the build will use, never less; where that cannot be promised, the
 * whole context is needed. Pure. */
#pragma once

#include "dockerfile/dockerfile.h"

enum { SILT_DOCKER_SOURCES_MAX = 128 };

struct silt_docker_sources {
    bool all;           /* any file of the context may be used */
    uint32_t line;      /* of the instruction that is to blame; 0: none is */
    const char *reason; /* what about it; static */
    silt_slice patterns[SILT_DOCKER_SOURCES_MAX]; /* names between single slashes; `*` matches any
                                                     part of a name, other bytes themselves */
    size_t count;
};

/* Patterns lie in the arena. */
void silt_docker_sources_read(struct silt_arena *a, const struct silt_dockerfile *f,
                              struct silt_docker_sources *ret);
