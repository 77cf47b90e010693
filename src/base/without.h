/* SPDX-License-Identifier: Apache-2.0 */
/* without: in test builds (-Dunsafe_tests=true) the variable SILT_WITHOUT takes single protections
 * away, so that a test can prove that its attack succeeds without them. In an ordinary build every
 * question here is the constant `false` and the code behind it is gone. */
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
