/* SPDX-License-Identifier: Apache-2.0 */
/* hello: ClientHellos for tests. */
#pragma once

#include <stddef.h>

enum hello_kind { HELLO_PLAIN, HELLO_ECH, HELLO_TWICE /* the name */, HELLO_EARLY };

/* One record; name "": without one. Its size. */
size_t make_hello(char *out, const char *name, enum hello_kind kind);
/* The same in records of one byte each: six times as large. */
size_t spread_hello(const char *hello, size_t len, char *out);
