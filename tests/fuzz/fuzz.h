/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what every fuzz target needs. The bytes come from libFuzzer, or from run_corpus.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold; asserts would do, but this one says what it is. */
#define demand(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)
