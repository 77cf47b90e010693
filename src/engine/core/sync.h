/* SPDX-License-Identifier: Apache-2.0 */
/* sync: the handshake between a parent and its cloned child until the child's exec, over a
 * close-on-exec seqpacket socket pair. If the peer closes its end, the call fails. */
#pragma once

#include "base/error.h"

enum silt_sync {
    /* parent -> child: your ids are mapped and your pid is recorded, continue */
    SYNC_IDS_MAPPED = 1,
};

/* [0] is the parent's end, [1] the child's. */
int silt_sync_open(int ret_pair[2], struct silt_error *e);

/* For the parent. */
int silt_sync_tell(int sync, enum silt_sync step, struct silt_error *e);
/* Returns 0 once the program runs; -1 with the error the child reported. */
int silt_sync_await_exec(int sync, int pidfd, struct silt_error *e);

/* For the child. */
/* Call first, and once: closes the child's copy of the parent's end, which would keep the child
 * from noticing the parent's death. Returns the child's end. */
int silt_sync_be_child(const int pair[2]);
int silt_sync_await(int sync, enum silt_sync step, struct silt_error *e);
_Noreturn void silt_sync_fail(int sync, const struct silt_error *e);
