/* SPDX-License-Identifier: Apache-2.0 */
/* without: which protections a test build was told to take away (base/without.h does it). Each is
 * logged as a warning, an unknown name is refused. In an ordinary build there is nothing here. */
#pragma once

#include "base/error.h"

#ifdef SILT_UNSAFE_TESTS
int silt_without_check(struct silt_error *e);
#else
static inline int silt_without_check(struct silt_error *e)
{
    (void)e;
    return 0;
}
#endif
