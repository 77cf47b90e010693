/* SPDX-License-Identifier: Apache-2.0 */
/* table: test cases in a text file, one a line: a verdict letter, a name, and bytes in which ~xx is
 * a byte in hex and ~(n)c is n times c (which may be ~xx). Lines that are empty or begin with # are
 * comments. */
#pragma once

#include "base/slice.h"

struct table_case {
    char verdict;
    const char *name;
    silt_slice bytes; /* alone in its piece of memory, so that a sanitizer sees a read beyond it */
};

/* Calls `each` for each case and answers how many there were; exits when the file is malformed. */
size_t table_each(const char *path, void (*each)(void *context, const struct table_case *c),
                  void *context);
