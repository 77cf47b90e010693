/* SPDX-License-Identifier: Apache-2.0 */
/* The body of `PUT /egress`. */
#include "sandbox/network/intercept.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_intercept_change c;
    struct silt_error e;
    silt_auto_arena arena;
    silt_arena_init(&arena, 1 << 20);
    if (silt_intercept_read(&arena, (silt_slice){(const char *)data, size}, &c, &e) < 0)
        return 0;
    demand(c.has_port || c.has_internet || c.has_hostnames);
    demand(!c.has_port || c.port > 0);
    demand(c.hostnames.len <= SILT_EGRESS_GLOBS_MAX);
    for (size_t i = 0; i < c.hostnames.len; i++)
        demand(c.hostnames.data[i] == '\n'
               || (c.hostnames.data[i] > ' ' && c.hostnames.data[i] < 0x7f));
    return 0;
}
