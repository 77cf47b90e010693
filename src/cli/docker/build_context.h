/* SPDX-License-Identifier: Apache-2.0 */
/* build_context: the directory of a build as a tar stream, packed by a child process. Contains what
 * the Dockerfile can use and .dockerignore does not exclude; a Dockerfile from elsewhere is the
 * first entry. */
#pragma once

#include "cli/core/client.h"
#include "cli/core/progress.h"
#include "cli/docker/wanted.h"

#include <sys/types.h>

#define SILT_BUILD_CONTEXT_DOCKERFILE ".silt-dockerfile"

struct silt_build_context {
    struct silt_client_source source; /* of the request */
    pid_t pid;
    int fd;
    struct silt_progress progress; /* of the request */
    struct silt_arena arena;
    struct silt_docker_sources sources; /* in the arena */
    bool quiet, explained;
    char piece[64 << 10];
};

struct silt_build_context_options {
    const char *directory;
    silt_slice dockerfile;       /* its text; data NULL: it lies in the directory */
    const char *dockerfile_path; /* in the directory; sent even if ignored */
    bool quiet;                  /* do not report a long transfer */
};

int silt_build_context_open(struct silt_build_context *c,
                            const struct silt_build_context_options *o, struct silt_error *e);
/* Fails if not everything could be packed. */
int silt_build_context_close(struct silt_build_context *c, struct silt_error *e);
