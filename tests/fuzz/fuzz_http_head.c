/* SPDX-License-Identifier: Apache-2.0 */
/* A head is refused, unfinished or complete, and what is said of its first bytes is never taken
 * back. */
#include "fuzz/fuzz.h"
#include "http/parse.h"

static void check_values(const struct silt_http_head *h)
{
    for (size_t i = 0; i < h->count; i++) {
        demand(h->fields[i].name.len > 0);
        demand(!silt_slice_has_byte(h->fields[i].value, '\n'));
        demand(!silt_slice_has_byte(h->fields[i].value, '\r'));
        demand(!silt_slice_has_byte(h->fields[i].value, '\0'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_http_head h;
    silt_slice bytes = {(const char *)data, size};
    for (enum silt_http_kind kind = SILT_HTTP_REQUEST; kind <= SILT_HTTP_CONNECT; kind++) {
        int whole = silt_http_parse(&h, bytes, kind);
        if (whole > 0) {
            demand((size_t)whole <= size && whole <= SILT_HTTP_HEAD_MAX);
            demand(h.count <= SILT_HTTP_FIELDS_MAX && !(h.chunked && h.has_length));
            check_values(&h);
        }
        for (size_t n = size % 7; n < size; n += 1 + size / 16) {
            int early = silt_http_parse(&h, (silt_slice){bytes.data, n}, kind);
            demand(early == 0 || early == whole);
        }
    }
    return 0;
}
