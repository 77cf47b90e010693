/* SPDX-License-Identifier: Apache-2.0 */
/* start_frame: a request to open a session or run a command, parsed and checked. */
#pragma once

#include "base/fd.h"
#include "wire/agent.h"

enum {
    /* variables; the kernel refuses more than a quarter of the stack */
    SILT_START_FRAME_ENV_MAX = 16384,
    SILT_START_FRAME_ARGS_MAX = 16384,
    /* as in an image's configuration; a name in /etc/passwd has at most 32 */
    SILT_USER_TEXT_MAX = 128,
};

struct silt_start_frame {
    struct silt_agent_start head;
    silt_slice note, cwd, env, user, command; /* point into `copy` or `map` */
    char *copy;                               /* owned */
    void *map;                                /* owned: mapping of the memfd, if any */
    size_t map_len;
    int log, secret, out, err, lines; /* owned; -1: none */
};

/* Copies what it needs and takes descriptors out of the parcel; the frame may be freed. */
int silt_start_frame_parse(struct silt_start_frame *s, const struct silt_frame *f, size_t body_len,
                           struct silt_parcel *p, struct silt_error *e);
struct silt_start_frame
silt_start_frame_take(struct silt_start_frame *s);      /* s is empty afterwards */
void silt_start_frame_fini(struct silt_start_frame *s); /* fine if empty */

/* NULL-terminated arrays for execve, freed by the caller. The strings belong to the start. */
int silt_start_frame_envp(const struct silt_start_frame *s, char ***ret, struct silt_error *e);
int silt_start_frame_argv(const struct silt_start_frame *s, char ***ret, struct silt_error *e);
/* The value of a variable, or NULL. */
const char *silt_start_frame_getenv(const struct silt_start_frame *s, const char *name);
