/* SPDX-License-Identifier: Apache-2.0 */
/* What a stranger's image says about its commands: what is taken is written in a spelling that is
 * read as the same. */
#include "base/own.h"
#include "fuzz/fuzz.h"
#include "sandbox/core/image_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_image_config c, again;
    struct silt_error e;
    struct silt_arena a;
    silt_auto_buf first, second;
    silt_buf_init(&first, 1 << 22);
    silt_buf_init(&second, 1 << 22);
    silt_arena_init(&a, 1 << 24);
    if (silt_image_config_read(&a, (silt_slice){(const char *)data, size}, &c, &e) == 0) {
        silt_image_config_write(&first, &c);
        demand(!first.broken
               && silt_image_config_read(&a, silt_buf_slice(&first), &again, &e) == 0);
        silt_image_config_write(&second, &again);
        demand(silt_slice_eq(silt_buf_slice(&first), silt_buf_slice(&second)));
        (void)silt_image_config_is_builtin(&c);
    }
    silt_arena_fini(&a);
    return 0;
}
