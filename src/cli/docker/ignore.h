/* SPDX-License-Identifier: Apache-2.0 */
/* ignore: the rules of a .dockerignore: one glob per line, the last match wins; `!` includes a file
 * again. */
#pragma once

#include "base/slice.h"

enum { SILT_IGNORE_MAX = 1024 };

struct silt_ignore {
    struct {
        silt_slice glob; /* borrowed from the text */
        bool back;       /* the rule begins with `!` */
    } rules[SILT_IGNORE_MAX];
    size_t count;
    bool takes_back; /* a rule begins with `!` */
};

/* Rules beyond the maximum are dropped. */
void silt_ignore_read(struct silt_ignore *g, silt_slice text);
/* `path` is relative to the directory, without leading or trailing slashes. */
bool silt_ignore_fits(const struct silt_ignore *g, silt_slice path);
