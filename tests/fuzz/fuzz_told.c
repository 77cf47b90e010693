/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the gate's log, with a sandbox's packets in them: each is read to its end, and what
 * comes of it is plain. */
#include "fuzz/fuzz.h"
#include "proxy/egress/nflog_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice rest = {(const char *)data, size};
    struct silt_nflog_reader_event v;
    size_t before = rest.len;
    while (silt_nflog_reader_parse(&rest, &v)) {
        demand(rest.len < before);
        before = rest.len;
        if (v.what == SILT_NFLOG_READER_NOTHING)
            continue;
        demand(v.link > 0);
        demand(v.what == SILT_NFLOG_READER_BEGUN || v.refusal.family == 4 || v.refusal.family == 6);
        demand(v.refusal.reason > 0 && v.refusal.reason < SILT_REFUSED_REASON_MAX);
    }
    return 0;
}
