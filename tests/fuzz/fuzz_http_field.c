/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, lists of tags and of types: a part always fits its file. */
#include "fuzz/fuzz.h"
#include "http/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice field = {(const char *)data, size};
    static const uint64_t sizes[] = {0, 1, 1000, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct silt_http_range r;
        enum silt_http_part part =
            silt_http_range_fit(silt_http_range_read(field, &r), sizes[i], &r);
        demand(part != SILT_HTTP_LAST_PART);
        demand(part != SILT_HTTP_WHOLE || (r.from == 0 && r.length == sizes[i]));
        demand(part != SILT_HTTP_PART
               || (r.length > 0 && r.from < sizes[i] && r.length <= sizes[i] - r.from));
    }
    bool strong = silt_http_etag_in(field, SILT_LIT("\"tag\""), false);
    demand(!strong || silt_http_etag_in(field, SILT_LIT("\"tag\""), true));
    (void)silt_http_accepts(field, SILT_LIT("application/x-tar"));
    return 0;
}
