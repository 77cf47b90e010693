/* SPDX-License-Identifier: Apache-2.0 */
/* place: where something is copied from or to: ID:PATH in a sandbox, a path of this machine, or -
 * for standard input or output. */
#pragma once

#include "base/id.h"

enum silt_place_kind { SILT_PLACE_LOCAL, SILT_PLACE_BOX, SILT_PLACE_STDIO };

struct silt_place {
    enum silt_place_kind kind;
    char id[SILT_ID_MAX + 1]; /* of the sandbox */
    char path[PATH_MAX];      /* "": the folder that sandboxes begin in */
    const char *word;         /* as it was typed; borrowed */
};

/* A colon behind a slash belongs to a file name: ./a:b is a local file. */
int silt_place_parse(const char *word, struct silt_place *ret, struct silt_error *e);
/* The last name of a path, without slashes behind it; empty where there is none, as in / or .. */
silt_slice silt_place_name(const char *path);
bool silt_place_is_folder(const char *path); /* by the slash at its end */
int silt_place_add(char path[PATH_MAX], silt_slice name, struct silt_error *e); /* path/name */
