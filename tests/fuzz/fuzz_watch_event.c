/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a worker that watches: whatever it holds, what comes out keeps its promises. */
#include "fuzz/fuzz.h"
#include "sandbox/file/watch_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice rest = {(const char *)data, size}, path;
    struct silt_worker_event v;
    while (silt_watch_event_next(&rest, &v, &path) > 0) {
        demand(path.len > 0 && path.len <= SILT_WORKER_PATH_MAX && path.data[0] == '/');
        demand((const uint8_t *)path.data + path.len <= data + size);
        demand(!silt_slice_has_byte(path, 0));
        demand(v.what != 0 && (v.what & (v.what - 1)) == 0 && v.what <= SILT_WATCH_GONE);
    }
    return 0;
}
