/* SPDX-License-Identifier: Apache-2.0 */
/* git_url: where a repository is, as a caller may say it. Only transports that run nothing on this
 * side are let through, and credentials are taken out: git gets them another way. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { SILT_GIT_URL_MAX = 2048, SILT_GIT_NAME_MAX = 255 };

struct silt_git_url {
    struct silt_buf plain;  /* what git sees: without credentials */
    struct silt_buf shown;  /* what messages show: ****** in their place */
    struct silt_buf origin; /* http(s) with credentials: scheme, host and port that may get them */
    struct silt_buf user, password; /* decoded */
    bool has_secret;
    bool local;                       /* a path of the sandbox */
    char name[SILT_GIT_NAME_MAX + 1]; /* of the folder that it goes to */
};

void silt_git_url_init(struct silt_git_url *u);
void silt_git_url_fini(struct silt_git_url *u); /* the secret's memory is cleared */
/* SILT_INVALID tells what is wrong with it, never showing it. `local`: paths and file:// are fine.
 */
int silt_git_url_read(struct silt_git_url *u, silt_slice text, bool local, struct silt_error *e);
/* Appends text with every http(s)://…@ in it, and what is secret of `u`, replaced by ******. */
void silt_git_redact(struct silt_buf *b, const struct silt_git_url *u, silt_slice text);
