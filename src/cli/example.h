/* SPDX-License-Identifier: Apache-2.0 */
/* example: the apps of examples/, compiled in, so that `silt new` has them wherever it is installed. Made by tools/embed_examples.py. */
#pragma once

#include "base/slice.h"

struct silt_example_file {
    const char *example; /* files of one example stand together */
    const char *path;    /* below its folder */
    silt_slice text;
};

extern const struct silt_example_file silt_example_files[];
extern const size_t silt_example_file_count;
