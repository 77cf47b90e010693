/* SPDX-License-Identifier: Apache-2.0 */
/* request: the validated body of a backup request (pack, unpack or upload) and the shell script
 * that carries it out. Runs in siltd; the script runs inside the sandbox with the rights of its
 * user. An invalid body is answered with 400. */
#pragma once

#include "api/core/session_choice.h"

enum silt_backup_kind { SILT_BACKUP_CREATE, SILT_BACKUP_RESTORE, SILT_BACKUP_UPLOAD };

enum { SILT_BACKUP_PARTS_MAX = 1000 };

/* Exit codes of the script when none of its programs failed. */
enum {
    SILT_BACKUP_ABSENT = 120 /* the source or the archive does not exist */,
    SILT_BACKUP_NO_TOOL = 121,
    SILT_BACKUP_SHORT = 122 /* the archive is shorter than its parts */
};

struct silt_backup_part {
    uint32_t number;
    uint64_t offset, size;
    silt_slice url;
};

struct silt_backup_request { /* slices and parts live as long as the HTTP request */
    enum silt_backup_kind kind;
    silt_slice dir; /* unused for uploads */
    silt_slice archive;
    silt_slice format; /* of compression */
    uint32_t threads;
    bool gitignore;
    const struct silt_json *excludes; /* NULL: none */
    struct silt_backup_part *parts;   /* sorted by part number */
    size_t count;
};

/* The caller sets ret->kind first. False: already answered with an error. */
bool silt_backup_request_read(struct silt_call *c, struct silt_backup_request *ret);
/* Adds the member "operation", as every backup error has. `context` is a JSON object or empty. */
void silt_backup_refuse(struct silt_http_request *r, enum silt_backup_kind kind,
                        enum silt_api_code code, silt_slice context, silt_slice message);
void silt_backup_script(const struct silt_backup_request *q, struct silt_buf *b);
