/* SPDX-License-Identifier: Apache-2.0 */
/* test_switch: in test builds (-Dunsafe_tests=true) the environment variable SILT_WITHOUT turns off
 * single protections, so that a test can prove that its attack succeeds without them. In an
 * ordinary build silt_without is the constant `false`, and the compiler removes the code behind it.
 */
#pragma once

#include <stdbool.h>

#ifdef SILT_UNSAFE_TESTS
bool silt_without(const char *protection);
#else
static inline bool silt_without(const char *protection)
{
    (void)protection;
    return false;
}
#endif
