/* SPDX-License-Identifier: Apache-2.0 */
/* session_choice: picks the session of a command: from the body, else the X-Session-Id header, else
 * the query, else `default`. Runs in siltd. A malformed name is answered with 400. */
#pragma once

#include "api/core/api.h"

struct silt_session_choice {
    silt_slice name;
    bool given; /* named by the client, so the response echoes it */
    bool plain; /* the literal __DISABLE_SESSION__ */
    bool blank; /* only white space, which is never a valid session name */
};

/* False: already answered with an error. */
bool silt_session_choice_read(struct silt_call *c, struct silt_session_choice *ret);
/* Finds or creates the session; NULL: error in *e. */
struct silt_session *silt_session_choice_session(struct silt_call *c,
                                                 const struct silt_session_choice *choice,
                                                 silt_slice cwd, struct silt_error *e);
