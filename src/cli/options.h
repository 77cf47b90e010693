/* SPDX-License-Identifier: Apache-2.0 */
/* options: the words behind a command: --name value, --name=value, --flag, -f, -fg, -s value, and
 * everything else in order. After `--` nothing is an option any more. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { SILT_WORDS_MAX = 256 };

struct silt_words {
    const char *items[SILT_WORDS_MAX]; /* borrowed from argv */
    size_t count;
};

struct silt_option {
    const char *name;         /* without the dashes */
    char letter;              /* of the short form; 0: none */
    bool *flag;               /* exactly one of these three */
    const char **value;       /* the last one given counts */
    struct silt_words *words; /* may be given again and again */
};

struct silt_options {
    const struct silt_option *table;
    size_t count;
    size_t plain_max; /* after so many plain words the next one begins the rest, as `--` does */
};

/* Plain words go to `plain`, what follows `--` to `rest`. */
int silt_options_parse(const struct silt_options *o, int argc, char **argv,
                       struct silt_words *plain, struct silt_words *rest, struct silt_error *e);
