/* SPDX-License-Identifier: Apache-2.0 */
/* What a reload hands over: what is read is written back as the same bytes. The magic, the version
 * and the checksum are added here; the input is slots, entries and texts of the head (4 bytes each)
 * and everything behind it. */
#include "fuzz/fuzz.h"
#include "super/handover.h"

enum { COUNTS = 12 };

static uint64_t checksum(const uint8_t *data, size_t size)
{
    uint32_t slots, entries;
    memcpy(&slots, data, sizeof(slots));
    memcpy(&entries, data + sizeof(slots), sizeof(entries));
    uint64_t sum = 0xcbf29ce484222325U ^ slots ^ (uint64_t)entries << 32;
    for (size_t i = COUNTS; i < size; i++)
        sum = (sum ^ data[i]) * 0x100000001b3U;
    return sum;
}

static void check(silt_slice bytes)
{
    struct silt_handover h;
    struct silt_error e;
    silt_auto_buf out;
    silt_buf_init(&out, SILT_HANDOVER_MAX);
    if (silt_handover_read(bytes, &h, &e) < 0) {
        demand(e.code == SILT_PROTOCOL);
        return;
    }
    struct silt_handover again;
    silt_handover_write(&h, &out);
    demand(out.len == bytes.len); /* entries may come in another order */
    demand(silt_handover_read(silt_buf_slice(&out), &again, &e) == 0);
    demand(again.listen == h.listen && again.keep.listener_count == h.keep.listener_count);
    silt_handover_forget(&again);
    silt_handover_forget(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t version = SILT_HANDOVER_VERSION;
    silt_auto_buf in;
    silt_buf_init(&in, 1 << 22);
    check((silt_slice){(const char *)data, size});
    if (size < COUNTS)
        return 0;
    uint64_t sum = checksum(data, size);
    silt_buf_add(&in, SILT_LIT("silt-ho\n"));
    silt_buf_add(&in, (silt_slice){(const char *)&version, sizeof(version)});
    silt_buf_add(&in, (silt_slice){(const char *)data, COUNTS});
    silt_buf_add(&in, (silt_slice){(const char *)&sum, sizeof(sum)});
    silt_buf_add(&in, (silt_slice){(const char *)data + COUNTS, size - COUNTS});
    check(silt_buf_slice(&in));
    return 0;
}
