/* SPDX-License-Identifier: Apache-2.0 */
/* A chunked body gives the same bytes and the same verdict, whole or in pieces. */
#include "fuzz/fuzz.h"
#include "http/parse.h"

struct result {
    enum silt_http_chunk end;
    size_t used, len;
    uint64_t sum; /* of the data, in order */
};

static struct result dechunk(silt_slice all, size_t piece)
{
    struct silt_http_chunks c = {0};
    struct result r = {0};
    while (r.used < all.len && r.end == SILT_HTTP_CHUNK_MORE) {
        size_t n = all.len - r.used < piece ? all.len - r.used : piece;
        silt_slice in = {all.data + r.used, n}, data;
        while ((r.end = silt_http_dechunk(&c, &in, &data)) == SILT_HTTP_CHUNK_DATA) {
            demand(data.len > 0);
            r.len += data.len;
            for (size_t i = 0; i < data.len; i++)
                r.sum = r.sum * 31 + (unsigned char)data.data[i];
        }
        r.used += n - in.len;
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice all = {(const char *)data, size};
    struct result whole = dechunk(all, SIZE_MAX);
    static const size_t pieces[] = {1, 2, 3, 7};
    for (size_t i = 0; i < 4; i++) {
        struct result split = dechunk(all, pieces[i]);
        demand(split.end == whole.end && split.used == whole.used);
        demand(split.len == whole.len && split.sum == whole.sum);
    }
    demand(whole.len <= size);
    return 0;
}
