/* SPDX-License-Identifier: Apache-2.0 */
/* What silt-proxy says was refused: whatever the bytes are, the list keeps its bounds and holds
 * names that can be shown. */
#include "fuzz/fuzz.h"
#include "sandbox/network/denials.h"

#include <string.h>

static void check(struct silt_denials *l)
{
    uint32_t count = 0;
    silt_list_each(it, &l->list)
    {
        const struct silt_denial *r = silt_outer(it, struct silt_denial, link);
        demand(r->count > 0 && r->protocol < SILT_EGRESS_PROTOCOL_MAX
               && r->reason < SILT_REFUSED_REASON_MAX);
        demand(strlen(r->name) < SILT_EGRESS_NAME);
        for (const char *c = r->name; *c != 0; c++)
            demand(*c > ' ' && *c <= '~');
        count++;
    }
    demand(count == l->count && count <= SILT_DENIALS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_denials l;
    struct silt_egress_refusal r;
    silt_denials_init(&l);
    for (size_t at = 0; at < size;) {
        size_t n = size - at < sizeof(r) ? size - at : sizeof(r);
        memset(&r, 0, sizeof(r));
        memcpy(&r, data + at, n);
        (void)silt_denials_note(&l, &r, (int64_t)at);
        at += n;
    }
    check(&l);
    silt_denials_fini(&l);
    return 0;
}
