/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a worker's frame: whatever comes, slices lie inside, and each item uses up some of it.
 */
#include "api/file/item.h"
#include "fuzz/fuzz.h"

static void inside(silt_slice all, silt_slice part)
{
    demand(part.data >= all.data && part.len <= all.len);
    demand((size_t)(part.data - all.data) <= all.len - part.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const silt_slice all = {(const char *)data, size};
    silt_slice rest = all, a, b;
    struct silt_worker_entry entry;
    struct silt_worker_match match;
    struct silt_worker_meta meta;
    for (size_t before = rest.len; silt_file_entry(&rest, &entry, &a); before = rest.len) {
        inside(all, a);
        demand(rest.len < before);
    }
    rest = all;
    for (size_t before = rest.len; silt_file_match(&rest, &match, &a, &b); before = rest.len) {
        inside(all, a);
        inside(all, b);
        demand(rest.len < before);
    }
    if (silt_file_meta_of(all, &meta, &a)) {
        inside(all, a);
        demand(memchr(meta.mime, 0, sizeof(meta.mime)) != NULL
               && strpbrk(meta.mime, "\r\n :;\"") == NULL);
    }
    return 0;
}
