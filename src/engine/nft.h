/* SPDX-License-Identifier: Apache-2.0 */
/* nft: loads a text of rules with the program nft (its library may not be linked: GPL-2-only). The
 * whole text is one transaction of the kernel: all of it or nothing. */
#pragma once

#include "base/slice.h"

/* In the caller's network namespace. SILT_UNAVAILABLE: nft is not installed. */
int silt_nft_load(silt_slice text, struct silt_error *e);
