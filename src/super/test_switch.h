/* SPDX-License-Identifier: Apache-2.0 */
/* test_switch: which protections a test build removes (base/test_switch.h implements it). Logs a
 * warning for each; an unknown name is an error. Empty in ordinary builds. */
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
