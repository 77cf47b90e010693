/* SPDX-License-Identifier: Apache-2.0 */
/* What a server in a sandbox may answer to the question whether it is ready. */
#include "fuzz/fuzz.h"
#include "worker/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char target[SILT_TARGET_SIZE] = "/a/b?c";
    struct silt_answer a;
    silt_slice bytes = {(const char *)data, size};
    if (silt_answer_read(bytes, &a) <= 0)
        return 0;
    demand(a.status >= 200 && a.status <= 999);
    demand(a.location.len == 0
           || (a.location.data >= bytes.data
               && a.location.data + a.location.len <= bytes.data + size));
    if (silt_answer_redirect(&a, 8080, target))
        for (size_t i = 0; target[i] != 0; i++)
            demand(target[0] == '/' && target[i] > ' ' && target[i] < 0x7f);
    return 0;
}
