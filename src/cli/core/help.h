/* SPDX-License-Identifier: Apache-2.0 */
/* help: prints what the table says of commands. */
#pragma once

#include "base/buf.h"
#include "cli/core/table.h"

void silt_help_all(void);
/* One command: its forms, options with defaults, an example. With `verbs` every verb of it. */
void silt_help_row(const struct silt_table_row *row, bool verbs);
/* Its forms, which `|` outside of brackets separates; `next` goes before each but the first. */
void silt_help_usage(const struct silt_table_row *row, const char *next, struct silt_buf *out);
