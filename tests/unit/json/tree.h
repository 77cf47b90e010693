/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a document that was read, written again. */
#pragma once

#include "json/json.h"

void tree_write(struct silt_buf *b, const struct silt_json *v);
