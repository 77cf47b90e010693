/* SPDX-License-Identifier: Apache-2.0 */
/* files: the daemon's routes for files of a sandbox, as copying needs them. */
#pragma once

#include "cli/client.h"
#include "cli/place.h"

enum { SILT_FILES_PATH_SIZE = 3 * PATH_MAX + 512 }; /* each byte of a path may need three */

enum { SILT_FILES_KEEP_MODE = 07777777 }; /* what is there keeps its permissions */

enum silt_files_kind { SILT_FILES_NOTHING, SILT_FILES_FILE, SILT_FILES_FOLDER };

struct silt_files_look {
    enum silt_files_kind kind;
    uint64_t size;
    unsigned mode;
};

/* Relative paths begin at /workspace. */
int silt_files_look(struct silt_client *c, const struct silt_place *p, struct silt_files_look *ret,
                    struct silt_error *e);
/* Asks for the bytes, a folder's as tar; an answer that is an error is told. */
int silt_files_get(struct silt_client *c, const struct silt_place *p, bool folder,
                   struct silt_error *e);
/* Fill in where the bytes come from before. `mode`: of a file. */
int silt_files_put(struct silt_client *c, const struct silt_place *p, bool folder, unsigned mode,
                   struct silt_client_request *q, struct silt_error *e);
