/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery records: what is read can be written, and reads back as itself. The first byte chooses
 * the kind; the head, with a right checksum, is added here. */
#include "fuzz/fuzz.h"
#include "store/recovery.h"

#include <inttypes.h>

static uint64_t checksum(const uint8_t *data, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325U;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * 0x100000001b3U;
    return sum;
}

static void check_sandbox(silt_slice bytes)
{
    struct silt_recovery_sandbox first, again;
    struct silt_error e;
    silt_auto_buf out;
    silt_buf_init(&out, SILT_RECOVERY_MAX);
    if (silt_recovery_read_sandbox(bytes, &first, &e) == 0
        && silt_recovery_write_sandbox(&out, &first, &e) == 0) {
        demand(silt_recovery_read_sandbox(silt_buf_slice(&out), &again, &e) == 0);
        demand(strcmp(first.row.id, again.row.id) == 0 && first.port_count == again.port_count);
        demand(again.env_left_out || first.row.env_len == again.row.env_len);
        silt_recovery_sandbox_fini(&again);
    }
    silt_recovery_sandbox_fini(&first);
}

static void check_image(silt_slice bytes)
{
    struct silt_recovery_image first, again;
    struct silt_error e;
    silt_auto_buf out;
    silt_buf_init(&out, SILT_RECOVERY_IMAGE_MAX);
    if (silt_recovery_read_image(bytes, &first, &e) == 0
        && silt_recovery_write_image(&out, &first, &e) == 0) {
        demand(silt_recovery_read_image(silt_buf_slice(&out), &again, &e) == 0);
        demand(strcmp(first.row.config, again.row.config) == 0
               && first.name_count == again.name_count);
        silt_recovery_image_fini(&again);
    }
    silt_recovery_image_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_auto_buf in;
    silt_buf_init(&in, 1 << 20);
    check_sandbox((silt_slice){(const char *)data, size});
    if (size == 0)
        return 0;
    bool image = data[0] == 'i';
    silt_buf_addf(&in, "silt recovery 1 %s %016" PRIx64 "\n", image ? "image" : "sandbox",
                  checksum(data + 1, size - 1));
    silt_buf_add(&in, (silt_slice){(const char *)data + 1, size - 1});
    if (image)
        check_image(silt_buf_slice(&in));
    else
        check_sandbox(silt_buf_slice(&in));
    return 0;
}
