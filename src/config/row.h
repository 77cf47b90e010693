/* SPDX-License-Identifier: Apache-2.0 */
/* row: the description of one setting, and the table of all settings. Private to this directory. */
#pragma once

#include "base/slice.h"
#include "config/config.h"

enum {
    SILT_ROW_NAME_MAX = 40,
    SILT_ROW_COUNT =
        78, /* rows in silt_rows: one too many does not compile, one too few fails every test */
};

#define SILT_ROW_DEFAULT_FILE "/etc/silt/silt.conf"

enum silt_row_kind {
    SILT_ROW_TEXT,
    SILT_ROW_PATH,
    SILT_ROW_CHOICE,
    SILT_ROW_NUMBER,
    SILT_ROW_BYTES,
    SILT_ROW_LEVEL
};

struct silt_row {
    const char *name;
    enum silt_row_kind kind;
    const char *preset;  /* the default in the file's syntax; "": see help */
    uint64_t min, max;   /* NUMBER, BYTES: bounds; TEXT: length */
    const char *choices; /* CHOICE, LEVEL: "a|b|c" */
    size_t at, size;     /* offset and size of the field in struct silt_config */
    const char *help;
};

extern const struct silt_row silt_rows[SILT_ROW_COUNT];

const struct silt_row *silt_row_find(silt_slice name);
/* The row's value as --name=value; the caller frees it. */
char *silt_row_to_flag(const struct silt_row *r, const struct silt_config *c);
int silt_row_set(const struct silt_row *r, struct silt_config *c, const char *value,
                 struct silt_error *e);
