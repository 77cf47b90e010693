/* SPDX-License-Identifier: Apache-2.0 */
/* mint: certificates (ECDSA, P-256): an authority's own, and those that it signs. Beside http/tls the only place that includes OpenSSL's
 * headers for them. */
#pragma once

#include "base/error.h"
#include "wire/egress.h"

int silt_mint_authority(struct silt_egress_authority *ret, struct silt_error *e);

struct silt_mint;
/* Of an authority that was made by silt_mint_authority, wherever it has been since. */
int silt_mint_open(const struct silt_egress_authority *authority, struct silt_mint **ret, struct silt_error *e);
void silt_mint_close(struct silt_mint *m);
/* For the server of this name, as silt_policy_clean makes it. */
int silt_mint_sign(const struct silt_mint *m, const char *name, int64_t until_s, struct silt_egress_authority *ret,
                   struct silt_error *e);
