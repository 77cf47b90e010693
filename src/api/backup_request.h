/* SPDX-License-Identifier: Apache-2.0 */
/* backup_request: what is to be packed, unpacked or uploaded, checked; and the text for a shell
 * that does it. All of it happens inside the sandbox, with the rights of its user. */
#pragma once

#include "api/choice.h"

enum silt_backup_kind { SILT_BACKUP_CREATE, SILT_BACKUP_RESTORE, SILT_BACKUP_UPLOAD };

enum { SILT_BACKUP_PARTS_MAX = 1000 };

/* How a script ends when no program has failed. */
enum {
    SILT_BACKUP_ABSENT = 120 /* source or archive */,
    SILT_BACKUP_NO_TOOL = 121,
    SILT_BACKUP_SHORT = 122 /* archive */
};

struct silt_backup_part {
    uint32_t number;
    uint64_t offset, size;
    silt_slice url;
};

struct silt_backup_request { /* slices and parts live as long as the HTTP request */
    enum silt_backup_kind kind;
    silt_slice dir; /* not of an upload */
    silt_slice archive;
    silt_slice format; /* of the compression */
    uint32_t threads;
    bool gitignore;
    const struct silt_json *excludes; /* NULL: none */
    struct silt_backup_part *parts;   /* by number */
    size_t count;
};

/* ret->kind is set. False: refused already. */
bool silt_backup_request_read(struct silt_call *c, struct silt_backup_request *ret);
/* With the member "operation", which all errors of backups have. `context` is a JSON object or
 * empty. */
void silt_backup_refuse(struct silt_http_request *r, enum silt_backup_kind kind,
                        enum silt_api_code code, silt_slice context, silt_slice message);
void silt_backup_script(const struct silt_backup_request *q, struct silt_buf *b);
