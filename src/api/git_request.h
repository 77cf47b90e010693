/* SPDX-License-Identifier: Apache-2.0 */
/* git_request: which repository is to be cloned where, checked, and the commands that do it. */
#pragma once

#include "api/choice.h"
#include "api/git_url.h"

struct silt_git_request { /* slices live as long as the HTTP request */
    silt_slice repo;      /* as it was given */
    struct silt_git_url url;
    silt_slice branch; /* empty: the repository's own */
    silt_slice target; /* as it was given, or the default */
    uint32_t depth;    /* 0: all of it */
    uint32_t timeout_ms;
    struct silt_choice choice;
};

/* False: refused already. Otherwise the caller ends with silt_git_url_fini. */
bool silt_git_request_read(struct silt_call *c, struct silt_git_request *ret);
/* Text for a shell. Without anything secret; those come through descriptor 3. */
void silt_git_request_script(const struct silt_git_request *q, bool progress, struct silt_buf *b);
/* NAME=value\0… */
silt_slice silt_git_request_env(const struct silt_git_request *q);
