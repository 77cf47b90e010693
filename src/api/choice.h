/* SPDX-License-Identifier: Apache-2.0 */
/* choice: which session a command runs in: body, then X-Session-Id, then the query, else `default`. */
#pragma once

#include "api/api.h"

struct silt_choice {
    silt_slice name;
    bool given;     /* named by the caller: the answer echoes it */
    bool plain;     /* the literal __DISABLE_SESSION__ */
    bool blank;     /* only white space: no session can be called that */
};

/* False: refused already. */
bool silt_choice_read(struct silt_call *c, struct silt_choice *ret);
/* The session, created when there is none; NULL: error in *e. */
struct silt_session *silt_choice_session(struct silt_call *c, const struct silt_choice *choice, silt_slice cwd,
                                         struct silt_error *e);
