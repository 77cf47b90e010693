/* SPDX-License-Identifier: Apache-2.0 */
/* copy_target: one end of a copy: ID:PATH in a sandbox, a path of this machine, or - for standard
 * input or output. */
#pragma once

#include "base/id.h"

enum silt_copy_target_kind { SILT_COPY_TARGET_LOCAL, SILT_COPY_TARGET_BOX, SILT_COPY_TARGET_STDIO };

struct silt_copy_target {
    enum silt_copy_target_kind kind;
    char id[SILT_ID_MAX + 1]; /* of the sandbox */
    char path[PATH_MAX];      /* "": the default directory of sandboxes */
    const char *word;         /* as it was typed; borrowed */
};

/* A colon after a slash belongs to a file name: ./a:b is a local file. */
int silt_copy_target_parse(const char *word, struct silt_copy_target *ret, struct silt_error *e);
/* The last component of a path without trailing slashes; empty if it has none, as / or .. */
silt_slice silt_copy_target_name(const char *path);
bool silt_copy_target_is_directory(const char *path); /* it ends with a slash */
int silt_copy_target_add(char path[PATH_MAX], silt_slice name,
                         struct silt_error *e); /* path/name */
