/* SPDX-License-Identifier: Apache-2.0 */
/* mint: creates certificates (ECDSA P-256): those of authorities, and those that an authority
 * signs. Used by siltd and silt-proxy. */
#pragma once

#include "base/error.h"
#include "wire/egress.h"

int silt_mint_authority(struct silt_egress_authority *ret, struct silt_error *e);

struct silt_mint;
/* Opens an authority made by silt_mint_authority, wherever it has been stored since. */
int silt_mint_open(const struct silt_egress_authority *authority, struct silt_mint **ret,
                   struct silt_error *e);
void silt_mint_close(struct silt_mint *m);
/* Signs a certificate for the server of this name, as normalized by silt_policy_clean. */
int silt_mint_sign(const struct silt_mint *m, const char *name, int64_t until_s,
                   struct silt_egress_authority *ret, struct silt_error *e);
