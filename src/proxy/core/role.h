/* SPDX-License-Identifier: Apache-2.0 */
/* role: what all roles of silt-proxy share: the channel to silt-super, with which they exit, and
 * the descriptor limit. */
#pragma once

#include "base/fd.h"
#include "event/loop.h"
#include "wire/super.h"

/* True: a note has come; what came with it is the caller's to take or to close. Without a
 * silt-super the loop is stopped. */
bool silt_role_hear(struct silt_loop *loop, const struct silt_watch *super,
                    struct silt_super_note *ret, struct silt_parcel *ret_in);
size_t silt_role_files(void); /* how many descriptors it may have */
