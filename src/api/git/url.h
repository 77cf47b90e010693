/* SPDX-License-Identifier: Apache-2.0 */
/* url: validates a client's repository URL. Allows only transports that run no program on the git
 * client's side, and extracts credentials, which git receives another way. Pure; fails with
 * SILT_INVALID. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { SILT_GIT_URL_MAX = 2048, SILT_GIT_NAME_MAX = 255 };

struct silt_git_url {
    struct silt_buf plain; /* passed to git: without credentials */
    struct silt_buf shown; /* shown in messages: ****** instead of credentials */
    struct silt_buf
        origin; /* http(s) with credentials: the scheme, host and port they may be sent to */
    struct silt_buf user, password; /* percent-decoded */
    bool has_secret;
    bool local;                       /* a path inside the sandbox */
    char name[SILT_GIT_NAME_MAX + 1]; /* of the directory to clone into */
};

void silt_git_url_init(struct silt_git_url *u);
void silt_git_url_fini(struct silt_git_url *u); /* wipes the credentials from memory */
/* SILT_INVALID says what is wrong without showing the URL. `local`: paths and file:// are
 * allowed. */
int silt_git_url_read(struct silt_git_url *u, silt_slice text, bool local, struct silt_error *e);
/* Appends text, with the userinfo of every http(s)://…@ and the secrets of `u` replaced by
 * ******. */
void silt_git_redact(struct silt_buf *b, const struct silt_git_url *u, silt_slice text);
