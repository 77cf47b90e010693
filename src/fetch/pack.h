/* SPDX-License-Identifier: Apache-2.0 */
/* pack: the current folder as a tar. Names come in one order and times in seconds, so that a tree that nobody
 * changes gives the same bytes each time. */
#pragma once

#include "base/slice.h"

struct silt_pack_sink {
    int (*take)(struct silt_pack_sink *s, silt_slice bytes, struct silt_error *e);
};

/* What a layer cannot hold (sockets, device nodes, names that would be whiteouts) is left out and
 * counted. */
int silt_pack(struct silt_pack_sink *sink, uint64_t *ret_left_out, struct silt_error *e);
