/* SPDX-License-Identifier: Apache-2.0 */
/* sync: what a parent and the child it has cloned tell each other until the child's exec, on a
 * seqpacket socket pair that closes at exec. A peer that closes is a failure. */
#pragma once

#include "base/error.h"

enum silt_sync {
    SYNC_IDS_MAPPED = 1, /* parent -> child: your ids are mapped, you are noted: go on */
};

/* [0] is the parent's end, [1] the child's. */
int silt_sync_open(int ret_pair[2], struct silt_error *e);

/* Parent */
int silt_sync_tell(int sync, enum silt_sync step, struct silt_error *e);
/* Answers when the program runs; -1 with the child's own words. */
int silt_sync_await_exec(int sync, int pidfd, struct silt_error *e);

/* Child */
/* First of all, and only once: as long as the child holds the parent's end too, it would not notice
 * the parent's death. The child's end is returned. */
int silt_sync_be_child(const int pair[2]);
int silt_sync_await(int sync, enum silt_sync step, struct silt_error *e);
_Noreturn void silt_sync_fail(int sync, const struct silt_error *e);
