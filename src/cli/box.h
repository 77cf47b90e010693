/* SPDX-License-Identifier: Apache-2.0 */
/* box: the daemon's own routes know only sandboxes that exist. For whoever types a command the
 * first use of an id makes its sandbox, whatever the command is. */
#pragma once

#include "cli/client.h"

/* Why the last request failed: there is no such sandbox yet. */
bool silt_box_is_missing(const struct silt_client *c);
int silt_box_make(struct silt_client *c, const char *id, struct silt_error *e);
