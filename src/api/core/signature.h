/* SPDX-License-Identifier: Apache-2.0 */
/* signature: what a signed URL of a file proves: `expires` and `signature` in the query, for one
 * method and path of one sandbox. Made with the API's token as the key, so another token ends all
 * of them, as does the end of the sandbox. Runs in siltd. */
#pragma once

#include "api/core/api.h"

enum { SILT_SIGNATURE_SIZE = 65 }; /* of the text */

struct silt_signature {
    silt_slice method; /* GET, which is also HEAD, or PUT */
    silt_slice id, path;
    int64_t created_ms; /* of the sandbox */
    uint64_t until_s;
};

void silt_signature_make(const struct silt_api *api, const struct silt_signature *s,
                         char ret[SILT_SIGNATURE_SIZE]);
/* Whether a request for files of the sandbox `id` is signed. */
bool silt_signature_has(struct silt_api *api, struct silt_http_request *r, silt_slice id);
