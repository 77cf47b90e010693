/* SPDX-License-Identifier: Apache-2.0 */
/* What is good base64 has the size that was said, and comes back the same when it is written again.
 */
#include "base/base64.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice text = {(const char *)data, size}, rest = text;
    if (size > 4096 || silt_base64_check(text) != NULL)
        return 0;
    char bytes[4096];
    size_t made = 0, want = silt_base64_size(text);
    while (rest.len > 0) {
        size_t n = silt_base64_decode(&rest, bytes + made, made % 7 + 3);
        demand(n > 0 || rest.len == 0);
        made += n;
    }
    demand(made == want);
    struct silt_base64 x = {0};
    silt_auto_buf again;
    silt_buf_init(&again, 8192);
    silt_base64_encode(&x, &again, (silt_slice){bytes, made});
    silt_base64_encode_end(&x, &again);
    demand(silt_base64_size(silt_buf_slice(&again)) == want);
    char back[4096];
    rest = silt_buf_slice(&again);
    demand(silt_base64_decode(&rest, back, sizeof(back)) == made && memcmp(back, bytes, made) == 0);
    return 0;
}
