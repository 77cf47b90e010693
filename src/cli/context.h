/* SPDX-License-Identifier: Apache-2.0 */
/* context: the folder that an image is built from as a stream of tar bytes: what its Dockerfile can use, without what its .dockerignore names, and
 * with the Dockerfile as the first entry when that does not lie in the folder. A child packs it. */
#pragma once

#include "cli/client.h"
#include "cli/progress.h"
#include "cli/wanted.h"

#include <sys/types.h>

#define SILT_CONTEXT_DOCKERFILE ".silt-dockerfile"

struct silt_context {
    struct silt_client_source source; /* of the request */
    pid_t pid;
    int fd;
    struct silt_progress progress; /* of the request */
    struct silt_arena arena;
    struct silt_docker_sources sources; /* in the arena */
    bool quiet, explained;
    char piece[64 << 10];
};

struct silt_context_options {
    const char *folder;
    silt_slice dockerfile;    /* its text, or a slice whose data is NULL: it lies in the folder */
    const char *dockerfile_path; /* in the folder: it is sent, whatever is ignored */
    bool quiet;                  /* nothing is said about a long transfer */
};

int silt_context_open(struct silt_context *c, const struct silt_context_options *o, struct silt_error *e);
/* Fails when not all of it could be packed. */
int silt_context_close(struct silt_context *c, struct silt_error *e);
