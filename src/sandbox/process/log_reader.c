/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/log_reader.h"

#include <errno.h>
#include <sys/uio.h>

enum { RING_MIN = 64 << 10 };
_Static_assert(SILT_LOG_BATCH
                   >= sizeof(struct silt_log_record) + SILT_LOG_RECORD_MAX + SILT_LOG_ALIGN,
               "a batch holds the largest record");
_Static_assert((int)RING_MIN >= (int)SILT_LOG_BATCH, "a batch goes over the end of the ring once");

static size_t padded(size_t n)
{
    return (n + SILT_LOG_ALIGN - 1) / SILT_LOG_ALIGN * SILT_LOG_ALIGN;
}

/* Bytes read; -1: LATER or, where blocking is allowed, BROKEN. */
static ssize_t read_at(int fd, uint64_t offset, bool may_wait, void *into, size_t len)
{
    struct iovec part = {.iov_base = into, .iov_len = len};
    ssize_t n;
    do
        n = preadv2(fd, &part, 1, (off_t)offset, may_wait ? 0 : RWF_NOWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool is_sound(const struct silt_log_head *h)
{
    return h->magic == SILT_LOG_MAGIC && h->ring_bytes >= RING_MIN && h->ring_bytes <= SILT_LOG_RING
           && h->ring_bytes % SILT_LOG_ALIGN == 0 && h->head % SILT_LOG_ALIGN == 0
           && h->tail % SILT_LOG_ALIGN == 0 && h->tail <= h->head
           && h->head - h->tail <= h->ring_bytes && h->head <= INT64_MAX;
}

/* A head read while it is written may be inconsistent once; if it is so twice, the log is
 * broken. */
static enum silt_log_reader_found odd(bool may_wait)
{
    return may_wait ? SILT_LOG_BROKEN : SILT_LOG_LATER;
}

enum silt_log_reader_found silt_log_reader_look(int fd, bool may_wait, struct silt_log_head *ret)
{
    struct silt_log_head h = {0};
    ssize_t n = read_at(fd, 0, may_wait, &h, sizeof(h));
    bool unwritten = n == 0 || (n == (ssize_t)sizeof(h) && h.magic == 0 && h.head == 0);
    if (unwritten)
        h = (struct silt_log_head){.magic = SILT_LOG_MAGIC, .ring_bytes = SILT_LOG_RING};
    else if (n != (ssize_t)sizeof(h) || !is_sound(&h))
        return odd(may_wait);
    *ret = h;
    return SILT_LOG_FOUND;
}

uint64_t silt_log_reader_size(const struct silt_log_head *h)
{
    return h->head < h->ring_bytes ? h->head : h->ring_bytes;
}

static bool read_ring(int fd, uint64_t at, bool may_wait, struct silt_log_reader_batch *b)
{
    uint64_t from = at % b->head.ring_bytes;
    size_t first = b->len;
    if (first > b->head.ring_bytes - from)
        first = (size_t)(b->head.ring_bytes - from);
    size_t rest = b->len - first;
    return read_at(fd, SILT_LOG_HEAD_SIZE + from, may_wait, b->bytes, first) == (ssize_t)first
           && (rest == 0
               || read_at(fd, SILT_LOG_HEAD_SIZE, may_wait, b->bytes + first, rest)
                      == (ssize_t)rest);
}

/* Checks that the first record of a batch is whole and at its stated position. */
static enum silt_log_reader_found check_first(const struct silt_log_reader_batch *b)
{
    struct silt_log_record r;
    if (b->len < sizeof(r))
        return SILT_LOG_WRONG;
    memcpy(&r, b->bytes, sizeof(r));
    if (r.at != b->at)
        return SILT_LOG_WRONG;
    return r.len > SILT_LOG_RECORD_MAX || padded(sizeof(r) + r.len) > b->len ? SILT_LOG_BROKEN
                                                                             : SILT_LOG_FOUND;
}

enum silt_log_reader_found silt_log_reader_fetch(int fd, uint64_t at, bool may_wait,
                                                 struct silt_log_reader_batch *b)
{
    struct silt_log_head again;
    enum silt_log_reader_found found = silt_log_reader_look(fd, may_wait, &b->head);
    if (found != SILT_LOG_FOUND)
        return found;
    at = at == SILT_LOG_OLDEST ? b->head.tail : at;
    b->at = at;
    if (at > b->head.head || at % SILT_LOG_ALIGN != 0)
        return SILT_LOG_WRONG;
    if (at < b->head.tail)
        return SILT_LOG_GONE;
    if (at == b->head.head)
        return SILT_LOG_DRY;
    b->used = 0;
    b->len = b->head.head - at < SILT_LOG_BATCH ? (size_t)(b->head.head - at) : SILT_LOG_BATCH;
    if (!read_ring(fd, at, may_wait, b))
        return odd(may_wait);
    found = silt_log_reader_look(fd, may_wait, &again);
    if (found != SILT_LOG_FOUND)
        return found;
    if (at < again.tail) { /* may have been overwritten while we read */
        b->head = again;
        return SILT_LOG_GONE;
    }
    return check_first(b);
}

int silt_log_reader_next(struct silt_log_reader_batch *b, struct silt_log_reader_piece *ret)
{
    struct silt_log_record r;
    size_t left = b->len - b->used;
    if (left < sizeof(r))
        return left == 0 || b->at + left < b->head.head ? 0 : -1;
    memcpy(&r, b->bytes + b->used, sizeof(r));
    if (r.at != b->at || r.len > SILT_LOG_RECORD_MAX || r.stream < SILT_LOG_STDOUT
        || r.stream > SILT_LOG_GAP)
        return -1;
    size_t size = padded(sizeof(r) + r.len);
    if (size > left)
        return b->at + size <= b->head.head ? 0 : -1;
    b->at += size;
    *ret = (struct silt_log_reader_piece){.stream = (enum silt_log_stream)r.stream,
                                          .bytes = {b->bytes + b->used + sizeof(r), r.len},
                                          .time_ms = r.time_ms,
                                          .lost = r.stream == SILT_LOG_GAP ? r.lost : 0,
                                          .after = b->at};
    b->used += size;
    return 1;
}
