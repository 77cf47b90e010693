/* SPDX-License-Identifier: Apache-2.0 */
/* request: the validated body of a clone request (which repository, to which directory) and the
 * shell script that does it. Runs in siltd; an invalid body is answered with 400. */
#pragma once

#include "api/core/session_choice.h"
#include "api/git/url.h"

struct silt_git_request { /* slices live as long as the HTTP request */
    silt_slice repo;      /* as given */
    struct silt_git_url url;
    silt_slice branch; /* empty: the repository's default */
    silt_slice target; /* as given, or the default */
    uint32_t depth;    /* 0: full history */
    uint32_t timeout_ms;
    struct silt_session_choice choice;
};

/* False: already answered with an error. On true, the caller must call silt_git_url_fini. */
bool silt_git_request_read(struct silt_call *c, struct silt_git_request *ret);
/* Writes the shell script. It contains no secrets; credentials are passed through descriptor 3. */
void silt_git_request_script(const struct silt_git_request *q, bool progress, struct silt_buf *b);
/* NAME=value\0… */
silt_slice silt_git_request_env(const struct silt_git_request *q);
