/* SPDX-License-Identifier: Apache-2.0 */
/* nft: loads a rule set with the nft program (libnftables is GPL-2.0-only and cannot be linked).
 * The text is one kernel transaction: it is applied completely or not at all. */
#pragma once

#include "base/slice.h"

/* Applies to the caller's network namespace. SILT_UNAVAILABLE: nft is not installed. */
int silt_nft_load(silt_slice text, struct silt_error *e);
