/* SPDX-License-Identifier: Apache-2.0 */
/* ignore: the rules of a .dockerignore: globs, one a line, the last that fits counts; `!` takes back. */
#pragma once

#include "base/slice.h"

enum { SILT_IGNORE_MAX = 1024 };

struct silt_ignore {
    struct {
        silt_slice glob; /* borrowed, of the text */
        bool back;       /* it is not ignored after all */
    } rules[SILT_IGNORE_MAX];
    size_t count;
    bool takes_back; /* one of them does */
};

/* What is beyond the maximum is left out. */
void silt_ignore_read(struct silt_ignore *g, silt_slice text);
/* A path below the folder, without a slash before or behind it. */
bool silt_ignore_fits(const struct silt_ignore *g, silt_slice path);
