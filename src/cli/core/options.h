/* SPDX-License-Identifier: Apache-2.0 */
/* options: parses the arguments of a command: --name value, --name=value, --flag, -f, -fg, -s
 * value; everything else is kept in order. After `--` nothing is an option. */
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
    const char **value;       /* the last one wins */
    struct silt_words *words; /* may be repeated */
};

struct silt_options {
    const struct silt_option *table;
    size_t count;
    size_t
        plain_max; /* after this many plain arguments the next one begins the rest, as `--` does */
};

/* Arguments that are not options go to `plain`, those after `--` to `rest`. */
int silt_options_parse(const struct silt_options *o, int argc, char **argv,
                       struct silt_words *plain, struct silt_words *rest, struct silt_error *e);
