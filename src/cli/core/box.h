/* SPDX-License-Identifier: Apache-2.0 */
/* box: creates a sandbox on first use of its id. The daemon's routes below /v1 answer 404 for an
 * unknown id; at the command line every command creates it. */
#pragma once

#include "cli/core/client.h"

/* Whether the last request failed because the sandbox does not exist yet. */
bool silt_box_is_missing(const struct silt_client *c);
/* Says so on standard error. Nothing if somebody else has just created it. */
int silt_box_make(struct silt_client *c, const char *id, struct silt_error *e);
/* A sandbox of our own, which is destroyed when it stops. Fails if the id exists: its files are not
 * ours to destroy. Standard error says nothing. */
int silt_box_make_own(struct silt_client *c, const char *id, struct silt_error *e);
int silt_box_remove(struct silt_client *c, const char *id, struct silt_error *e);
/* After something failed: if the sandbox has hardly room for another process, says how many it has,
 * of how many, and how to end them. */
void silt_box_explain(struct silt_client *c, const char *id);
