/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test_switch.h"

#ifdef SILT_UNSAFE_TESTS
#include "base/slice.h"

#include <stdlib.h>

/* Also called after fork: reads the environment and allocates nothing. */
bool silt_without(const char *protection)
{
    const char *list = getenv("SILT_WITHOUT");
    silt_slice rest = silt_slice_of(list != NULL ? list : "");
    silt_slice name;
    while (silt_slice_split(&rest, ',', &name))
        if (silt_slice_eq(name, silt_slice_of(protection)))
            return true;
    return false;
}
#else
/* ISO C forbids an empty translation unit. */
typedef int silt_without_nothing;
#endif
