/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/file/watch_event.h"

int silt_watch_event_next(silt_slice *rest, struct silt_worker_event *ret, silt_slice *ret_path)
{
    const uint32_t known = SILT_WATCH_GONE * 2 - 1;
    if (rest->len == 0)
        return 0;
    if (rest->len < sizeof(*ret))
        return -1;
    memcpy(ret, rest->data, sizeof(*ret));
    if (ret->path_len == 0 || ret->path_len > SILT_WORKER_PATH_MAX
        || (ret->what & known) != ret->what || __builtin_popcount(ret->what) != 1)
        return -1;
    size_t size = (sizeof(*ret) + ret->path_len + 7) & ~(size_t)7;
    if (size > rest->len)
        return -1;
    *ret_path = (silt_slice){rest->data + sizeof(*ret), ret->path_len};
    rest->data += size;
    rest->len -= size;
    return ret_path->data[0] == '/' && !silt_slice_has_byte(*ret_path, 0) ? 1 : -1;
}
