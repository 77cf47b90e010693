/* SPDX-License-Identifier: Apache-2.0 */
/* fs_identity: which uid and gid new files of this process get; capabilities are unaffected. A file
 * that changes owner later is created as root, so that nobody else can open it in between and keep
 * it open. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct silt_fs_identity {
    uid_t uid;
    gid_t gid;
};

struct silt_fs_identity silt_fs_identity_now(void);
/* Fails without a change if the user namespace does not map the ids. */
int silt_fs_identity_be(struct silt_fs_identity m, struct silt_error *e);
/* Returns the previous identity, for silt_fs_identity_be. */
struct silt_fs_identity silt_fs_identity_be_root(void);
