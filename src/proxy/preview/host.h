/* SPDX-License-Identifier: Apache-2.0 */
/* host: which preview a request means, by one rule for requests and upgrades alike. Either the
 * host is one lower-case label below the domain, with exactly the domain's port, and the label is
 * the name; or, where paths are enabled, the path begins with /preview/ID/PORT/TOKEN. The proof of
 * a signed URL or of our cookie is extracted as well. Anything else is rejected. */
#pragma once

#include "http/parse.h"
#include "wire/preview.h"

struct silt_host {
    enum silt_preview_form form;
    char name[SILT_PREVIEW_NAME];
    char proof[SILT_PREVIEW_PROOF]; /* "": none */
    bool signed_url;                /* the proof is in the URL */
    bool unfinished;                /* a path that ends with the token: it lacks its slash */
    silt_slice prefix;              /* of the path: what is ours */
    silt_slice path;                /* what the service is asked for; "" is "/" */
};

struct silt_host_rule {
    silt_slice domain; /* borrowed */
    bool paths;
};

/* 0, or the status to answer with: 400, 404. */
int silt_host_read(const struct silt_host_rule *rule, const struct silt_http_head *h,
                   struct silt_host *ret);

/* Whether a parameter (name=value) or a cookie is ours. */
bool silt_host_is_proof(silt_slice pair);
