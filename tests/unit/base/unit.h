/* SPDX-License-Identifier: Apache-2.0 */
/* unit: cmocka with tests that name themselves. A test program is unit.c and some test_<noun>.c. */
#pragma once

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void unit_add(const char *name, CMUnitTestFunction run);

#define TEST(name)                                                                                 \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        unit_add(#name, name);                                                                     \
    }                                                                                              \
    static void name(void **state __attribute__((unused)))

#define assert_slice(got, want)                                                                    \
    do {                                                                                           \
        silt_slice unit_got = (got), unit_want = (want);                                           \
        if (!silt_slice_eq(unit_got, unit_want))                                                   \
            fail_msg("got \"%.*s\", want \"%.*s\"", (int)unit_got.len, unit_got.data,              \
                     (int)unit_want.len, unit_want.data);                                          \
    } while (0)
#define assert_text(got, want) assert_slice(got, silt_slice_of(want))
