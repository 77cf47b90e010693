/* SPDX-License-Identifier: Apache-2.0 */
/* sync: what a parent and the child it has cloned tell each other until the child's exec, on a
 * seqpacket socket pair that closes at exec. A peer that closes is a failure. */
#pragma once

#include "base/error.h"

enum silt_sync {
    SYNC_IDS_MAPPED = 1, /* parent -> child: your ids are mapped, you are noted: go on */
};

/* Parent */
int silt_sync_tell(int sync, enum silt_sync step, struct silt_error *e);
/* Answers when the program runs; -1 with the child's own words. */
int silt_sync_await_exec(int sync, int pidfd, struct silt_error *e);

/* Child */
int silt_sync_await(int sync, enum silt_sync step, struct silt_error *e);
_Noreturn void silt_sync_fail(int sync, const struct silt_error *e);
