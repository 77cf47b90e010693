/* SPDX-License-Identifier: Apache-2.0 */
/* start: one request to open a session or to run a command, taken apart and checked. */
#pragma once

#include "base/fd.h"
#include "wire/agent.h"

enum {
    SILT_START_ENV_MAX = 16384, /* variables; the kernel refuses more than a quarter of the stack */
    SILT_START_ARGS_MAX = 16384,
    SILT_USER_TEXT_MAX = 128, /* as of an image; a name of /etc/passwd is at most 32 */
};

struct silt_start {
    struct silt_agent_start head;
    silt_slice note, cwd, env, user, command; /* of `copy` or of `map` */
    char *copy;                               /* owned */
    void *map;                                /* owned: the memfd that came along */
    size_t map_len;
    int log, secret, out, err, lines; /* owned; -1: none */
};

/* Copies what it needs and takes descriptors out of the parcel: the frame may go. */
int silt_start_parse(struct silt_start *s, const struct silt_frame *f, size_t body_len,
                     struct silt_parcel *p, struct silt_error *e);
struct silt_start silt_start_take(struct silt_start *s); /* nothing is left in s */
void silt_start_fini(struct silt_start *s);              /* fine when it is empty */

/* Arrays for execve, terminated, to be freed by the caller. The strings are the start's. */
int silt_start_envp(const struct silt_start *s, char ***ret, struct silt_error *e);
int silt_start_argv(const struct silt_start *s, char ***ret, struct silt_error *e);
/* The value of a variable, or NULL. */
const char *silt_start_getenv(const struct silt_start *s, const char *name);
