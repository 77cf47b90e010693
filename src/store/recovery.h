/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: a sandbox or an image as bytes, from which its rows can be made again when the database is lost. silt-priv keeps
 * them beside the files (wire/priv.h) and does not understand them. The bytes are
 *
 *     silt recovery 1 sandbox <checksum>\n      or `image`
 *     <name> <length>\n<value>\n                once per field; ports and names may come several times
 *
 * A reader passes over fields that it does not know; a change that it must not pass over has another version. */
#pragma once

#include "base/buf.h"
#include "store/store.h"

enum { SILT_RECOVERY_PORTS_MAX = 256, SILT_RECOVERY_NAMES_MAX = 1024 };

struct silt_recovery_sandbox {
    struct silt_sandbox_row row; /* without what only a running one has */
    struct silt_port_row *ports; /* owned by whoever filled it in */
    size_t port_count;
    bool env_left_out, allow_left_out; /* they did not fit */
};

struct silt_recovery_image {
    struct silt_image_row row;
    char (*names)[SILT_IMAGE_NAME_SIZE]; /* as above */
    size_t name_count;
};

/* What does not fit SILT_RECOVERY_MAX is left out: variables first, then the rules of the network. */
int silt_recovery_write_sandbox(struct silt_buf *b, const struct silt_recovery_sandbox *s, struct silt_error *e);
int silt_recovery_write_image(struct silt_buf *b, const struct silt_recovery_image *i, struct silt_error *e);

/* Everything in *ret is the caller's, also when it fails: the two below free it. */
int silt_recovery_read_sandbox(silt_slice bytes, struct silt_recovery_sandbox *ret, struct silt_error *e);
int silt_recovery_read_image(silt_slice bytes, struct silt_recovery_image *ret, struct silt_error *e);
void silt_recovery_sandbox_fini(struct silt_recovery_sandbox *s);
void silt_recovery_image_fini(struct silt_recovery_image *i);
