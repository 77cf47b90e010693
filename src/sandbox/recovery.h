/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: keeps what silt-priv holds beside the files of each sandbox and image (store/recovery.h) true, and makes the
 * database from it when that was lost. A new sandbox's record goes out with the request that makes it; changes follow one at
 * a time, in their order. */
#pragma once

#include "sandbox/registry.h"

struct silt_recovery; /* changes that wait, and the one under way */
struct silt_recovery *silt_recovery_new(struct silt_registry *r);
void silt_recovery_free(struct silt_recovery *v);
/* Those of a database older than records are: all of them. */
int silt_recovery_begin(struct silt_registry *r, struct silt_error *e);

/* A sealed memfd with the sandbox's record, the caller's. -1: there is none; that is logged. */
int silt_recovery_of_sandbox(const struct silt_sandbox *s);
void silt_recovery_on_sandbox(struct silt_sandbox *s); /* its row or its ports have changed */
void silt_recovery_on_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]); /* changed, or gone */
/* Whether its record is being written: whoever destroys it waits; silt_sandbox_on_recorded tells. */
bool silt_recovery_is_busy(const struct silt_registry *r, uint32_t slot);
