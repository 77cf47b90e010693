/* SPDX-License-Identifier: Apache-2.0 */
/* pack: writes the current directory as a tar. Names are sorted and times are whole seconds, so an
 * unchanged tree always gives the same bytes. */
#pragma once

#include "base/slice.h"

struct silt_pack_sink {
    int (*take)(struct silt_pack_sink *s, silt_slice bytes, struct silt_error *e);
};

/* Leaves out and counts what a layer cannot contain: sockets, device nodes and names that would be
 * whiteouts. */
int silt_pack(struct silt_pack_sink *sink, uint64_t *ret_left_out, struct silt_error *e);
