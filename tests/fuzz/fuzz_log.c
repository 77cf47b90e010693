/* SPDX-License-Identifier: Apache-2.0 */
/* A log as a hostile silt-init may leave it: the first byte says what of the head is made right,
 * then come the head and the ring. Whatever it holds, a reader gets pieces inside of it, always
 * goes forward, and comes to an end. */
#include "base/own.h"
#include "fuzz/fuzz.h"
#include "sandbox/process/log_reader.h"

#include <sys/mman.h>

enum { FIX_MAGIC = 1, FIX_RING = 2, FIX_ENDS = 4, STEPS_MAX = 1000 };

static char bytes[SILT_LOG_BATCH];

static void check_batch(struct silt_log_reader_batch *b)
{
    struct silt_log_reader_piece p;
    uint64_t at = b->at;
    while (silt_log_reader_next(b, &p) > 0) {
        demand(p.after > at && p.after <= b->head.head && p.after % SILT_LOG_ALIGN == 0);
        demand(p.bytes.len <= SILT_LOG_RECORD_MAX && p.bytes.data >= bytes
               && p.bytes.data + p.bytes.len <= bytes + sizeof(bytes));
        demand(p.stream >= SILT_LOG_STDOUT && p.stream <= SILT_LOG_GAP);
        at = p.after;
    }
    demand(b->at == at);
}

static void read_all(int fd)
{
    struct silt_log_reader_batch b = {.bytes = bytes};
    uint64_t at = SILT_LOG_OLDEST;
    for (int i = 0; i < STEPS_MAX; i++) {
        enum silt_log_reader_found found = silt_log_reader_fetch(fd, at, true, &b);
        demand(found != SILT_LOG_LATER);
        if (found != SILT_LOG_FOUND)
            return;
        uint64_t from = b.at;
        check_batch(&b);
        if (b.at == from)
            return; /* broken */
        at = b.at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_log_head h = {0};
    if (size < 1 + sizeof(h))
        return 0;
    memcpy(&h, data + 1, sizeof(h));
    h.magic = data[0] & FIX_MAGIC ? SILT_LOG_MAGIC : h.magic;
    h.ring_bytes = data[0] & FIX_RING ? 64 << 10 : h.ring_bytes;
    if (data[0] & FIX_ENDS) {
        h.tail = 0;
        h.head = (size - 1 - sizeof(h)) / SILT_LOG_ALIGN * SILT_LOG_ALIGN;
    }
    silt_auto_fd fd = memfd_create("log", MFD_CLOEXEC);
    demand(fd >= 0 && pwrite(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h));
    size_t rest = size - 1 - sizeof(h);
    demand(rest == 0
           || pwrite(fd, data + 1 + sizeof(h), rest, SILT_LOG_HEAD_SIZE) == (ssize_t)rest);
    read_all(fd);
    return 0;
}
