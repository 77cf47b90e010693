/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox sends on a connection: it is judged in the same way whole and in pieces, nothing
 * is passed twice, and names are plain. The first byte chooses the pieces. */
#include "fuzz/fuzz.h"
#include "proxy/egress/protocol_sniff.h"

struct fate {
    size_t passed, named;
    uint64_t names; /* a sum of all names */
    int reason;
};

static void add_name(struct fate *f, const char *name)
{
    size_t len = strnlen(name, SILT_EGRESS_NAME);
    demand(len > 0 && len < SILT_EGRESS_NAME);
    for (size_t i = 0; i < len; i++) {
        demand(name[i] > ' ' && name[i] < 0x7f && !(name[i] >= 'A' && name[i] <= 'Z'));
        f->names = f->names * 31 + (uint8_t)name[i];
    }
    f->named++;
}

static struct fate follow(silt_slice bytes, size_t piece)
{
    struct silt_protocol_sniff i = {0};
    struct fate f = {0};
    for (size_t to = 0; to < bytes.len;) {
        to = piece < bytes.len - to ? to + piece : bytes.len;
        while (f.passed < to) {
            size_t n = 0;
            enum silt_protocol_sniff_result r = silt_protocol_sniff_next(
                &i, (silt_slice){bytes.data + f.passed, to - f.passed}, &n);
            demand(n <= to - f.passed);
            if (r == SILT_PROTOCOL_SNIFF_NAMED)
                add_name(&f, i.name);
            if (r == SILT_PROTOCOL_SNIFF_REFUSE) {
                f.reason = (int)i.reason;
                demand(f.reason > 0 && f.reason < SILT_REFUSED_REASON_MAX);
                return f;
            }
            if (r == SILT_PROTOCOL_SNIFF_MORE)
                break;
            demand(n > 0);
            f.passed += n;
        }
    }
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    silt_slice bytes = {(const char *)data + 1, size - 1};
    struct fate whole = follow(bytes, bytes.len), parts = follow(bytes, 1U + data[0] % 64);
    demand(whole.reason == parts.reason && whole.named == parts.named
           && whole.names == parts.names);
    demand(whole.reason != 0 || whole.passed == parts.passed);
    return 0;
}
