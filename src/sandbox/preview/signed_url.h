/* SPDX-License-Identifier: Apache-2.0 */
/* signed_url: signed access to a private port until a given second, as text for URLs and cookies.
 * Signed with a secret from the store. It is a bearer token: its holder may pass it on. */
#pragma once

#include "base/slice.h"
#include "wire/preview.h"

#include <stdint.h>

/* For one route; exposing the port again makes a new route. */
struct silt_signed_url {
    uint64_t route;
    int64_t until_s; /* wall clock */
};

void silt_signed_url_write(silt_slice secret, const struct silt_signed_url *p,
                           char ret[SILT_PREVIEW_PROOF]);
/* Seconds the signature remains valid; 0: invalid for this route, or expired. */
int64_t silt_signed_url_check(silt_slice secret, uint64_t route, silt_slice text, int64_t now_s);
