/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: encodes a sandbox or an image as a recovery record, from which siltd restores its rows
 * if the database is lost. silt-priv stores records beside the files (wire/priv.h) without
 * understanding them. Pure; reading fails on a damaged record. The format:
 *
 *     silt recovery 1 sandbox <checksum>\n      or `image`
 *     <name> <length>\n<value>\n                once per field; ports and names may repeat
 *
 * Readers skip unknown fields; a change that they must not skip gets another version. */
#pragma once

#include "base/buf.h"
#include "store/store.h"

enum { SILT_RECOVERY_PORTS_MAX = 256, SILT_RECOVERY_NAMES_MAX = 1024 };

struct silt_recovery_sandbox {
    struct silt_sandbox_row row; /* without the fields of a running sandbox */
    struct silt_port_row *ports; /* owned by the code that filled it in */
    size_t port_count;
    bool env_left_out, allow_left_out; /* omitted because they did not fit */
};

struct silt_recovery_image {
    struct silt_image_row row;
    char (*names)[SILT_IMAGE_NAME_SIZE]; /* as above */
    size_t name_count;
    struct silt_snapshot_row snapshot; /* whose files it holds; id empty: none */
};

/* What exceeds SILT_RECOVERY_MAX is left out: variables first, then the network rules. */
int silt_recovery_write_sandbox(struct silt_buf *b, const struct silt_recovery_sandbox *s,
                                struct silt_error *e);
int silt_recovery_write_image(struct silt_buf *b, const struct silt_recovery_image *i,
                              struct silt_error *e);

/* The caller owns everything in *ret, also on failure; the two below free it. */
int silt_recovery_read_sandbox(silt_slice bytes, struct silt_recovery_sandbox *ret,
                               struct silt_error *e);
int silt_recovery_read_image(silt_slice bytes, struct silt_recovery_image *ret,
                             struct silt_error *e);
void silt_recovery_sandbox_fini(struct silt_recovery_sandbox *s);
void silt_recovery_image_fini(struct silt_recovery_image *i);
