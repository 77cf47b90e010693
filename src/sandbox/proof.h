/* SPDX-License-Identifier: Apache-2.0 */
/* proof: that we have let somebody visit a private port until a certain second. A text for URLs and
 * cookies, signed with a secret of the store; whoever has it may pass it on. */
#pragma once

#include "base/slice.h"
#include "wire/preview.h"

#include <stdint.h>

/* Of a route, which is another one when the port is exposed anew. */
struct silt_proof {
    uint64_t route;
    int64_t until_s; /* wall clock */
};

void silt_proof_write(silt_slice secret, const struct silt_proof *p, char ret[SILT_PREVIEW_PROOF]);
/* How many seconds the proof still lasts; 0: it is none for this route, or too old. */
int64_t silt_proof_check(silt_slice secret, uint64_t route, silt_slice text, int64_t now_s);
