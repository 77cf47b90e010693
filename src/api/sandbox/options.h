/* SPDX-License-Identifier: Apache-2.0 */
/* options: reads what a body of create or update says about a sandbox. What it does not name stays
 * as it is. All return false if the request was refused. Runs in siltd. */
#pragma once

#include "api/core/api.h"

enum { SILT_LABELS_MAX = 64 };

bool silt_api_read_type(struct silt_call *c, struct silt_sandbox_options *o);
bool silt_api_read_limits(struct silt_call *c, struct silt_sandbox_options *o);
/* Seconds as a number, or as text with a unit; *ret is unchanged if it is absent or null. */
bool silt_api_read_duration(struct silt_call *c, const char *name, int64_t *ret, bool *ret_null);
/* null: the instance's default; no expiry. */
bool silt_api_read_lifetime(struct silt_call *c, struct silt_lifetime *life);
/* The run of a call that changes c->sandbox as its body says (update.c). */
void silt_api_update_sandbox(struct silt_call *c);
/* Merges the labels into `before`, a JSON object or empty; null removes one. *ret: JSON text in the
 * arena. */
bool silt_api_read_labels(struct silt_call *c, silt_slice before, silt_slice *ret);
