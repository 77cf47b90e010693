/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: keeps the recovery records that silt-priv stores beside the files of each sandbox and
 * image (store/recovery.h) up to date. A new sandbox's record travels with the request that creates
 * it; later changes are sent one at a time, in order. restore.c rebuilds a lost database from the
 * records. */
#pragma once

#include "sandbox/core/registry.h"

struct silt_recovery; /* queued changes and the one in progress */
struct silt_recovery *silt_recovery_new(struct silt_registry *r);
void silt_recovery_free(struct silt_recovery *v);
/* If the database predates recovery records: writes all of them. */
int silt_recovery_begin(struct silt_registry *r, struct silt_error *e);

/* A sealed memfd with the sandbox's record, owned by the caller. -1: none could be made; the reason
 * is logged. */
int silt_recovery_of_sandbox(const struct silt_sandbox *s);
void silt_recovery_on_sandbox(struct silt_sandbox *s); /* its row or its ports changed */
/* An image changed or is gone. */
void silt_recovery_on_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
/* True while the record is being written: a destroy must wait for silt_sandbox_on_recorded. */
bool silt_recovery_is_busy(const struct silt_registry *r, uint32_t slot);
