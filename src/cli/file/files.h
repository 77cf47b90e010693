/* SPDX-License-Identifier: Apache-2.0 */
/* files: the daemon's routes for the files of a sandbox, as `silt cp` needs them. */
#pragma once

#include "cli/core/client.h"
#include "cli/file/copy_target.h"

enum { SILT_FILES_PATH_SIZE = 3 * PATH_MAX + 512 }; /* percent-encoding triples a byte */

enum { SILT_FILES_KEEP_MODE = 07777777 }; /* an existing file keeps its permissions */

enum silt_files_kind { SILT_FILES_NOTHING, SILT_FILES_FILE, SILT_FILES_DIRECTORY };

struct silt_files_look {
    enum silt_files_kind kind;
    uint64_t size;
    unsigned mode;
};

/* Relative paths begin at /workspace. */
int silt_files_look(struct silt_client *c, const struct silt_copy_target *p,
                    struct silt_files_look *ret, struct silt_error *e);
/* Requests the content, of a directory as a tar. An error response fails. */
int silt_files_get(struct silt_client *c, const struct silt_copy_target *p, bool directory,
                   struct silt_error *e);
/* The request's source must be set. `mode`: of a file. */
int silt_files_put(struct silt_client *c, const struct silt_copy_target *p, bool directory,
                   unsigned mode, struct silt_client_request *q, struct silt_error *e);
