/* SPDX-License-Identifier: Apache-2.0 */
/* maker: whose the files are that this process makes; its rights over files stay whoever that is. A file that gets its owner after it
 * was made is root's until then: else who it is not meant for could open it meanwhile, and keep it open. */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct silt_maker {
    uid_t uid;
    gid_t gid;
};

struct silt_maker silt_maker_now(void);
/* Fails, and changes nothing, where the user namespace has no such numbers. */
int silt_maker_be(struct silt_maker m, struct silt_error *e);
/* Answers who it was, for silt_maker_be. */
struct silt_maker silt_maker_be_root(void);
