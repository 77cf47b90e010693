/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/log.h"
#include "base/clock.h"
#include "base/own.h"

#include <string.h>
#include <unistd.h>

enum {
    /* Space is freed this far ahead: the header is written twice per piece of this size instead of
     * per record. */
    AHEAD = 64 << 10,
    LOOK = 4096, /* old records are read in pieces of this size */
};
_Static_assert(sizeof(struct silt_log_head) <= SILT_LOG_HEAD_SIZE, "the head has a page");
_Static_assert(sizeof(struct silt_log_record) % SILT_LOG_ALIGN == 0, "records are aligned");
_Static_assert((int)sizeof(struct silt_log_record) + SILT_LOG_RECORD_MAX <= AHEAD,
               "SILT_LOG_UNREAD_MAX leaves room for a record, what is ahead and a record cut off");

/* Shared: a record is written before the next one is read. */
static struct {
    struct silt_log_record head;
    char bytes[SILT_LOG_RECORD_MAX + SILT_LOG_ALIGN];
} piece;

static off_t place(uint64_t position)
{
    return (off_t)(SILT_LOG_HEAD_SIZE + position % SILT_LOG_RING);
}

/* Bytes up to the end of the ring, at most len. */
static size_t straight(uint64_t position, size_t len)
{
    uint64_t left = SILT_LOG_RING - position % SILT_LOG_RING;
    return len < left ? len : (size_t)left;
}

static bool write_ring(int fd, uint64_t at, const void *bytes, size_t len)
{
    const char *from = bytes;
    size_t first = straight(at, len);
    if (pwrite(fd, from, first, place(at)) != (ssize_t)first)
        return false;
    return first == len
           || pwrite(fd, from + first, len - first, place(at + first)) == (ssize_t)(len - first);
}

static bool read_ring(int fd, uint64_t at, void *bytes, size_t len)
{
    char *to = bytes;
    size_t first = straight(at, len);
    if (pread(fd, to, first, place(at)) != (ssize_t)first)
        return false;
    return first == len
           || pread(fd, to + first, len - first, place(at + first)) == (ssize_t)(len - first);
}

static bool write_head(const struct silt_log_writer *w, const struct silt_log_head *h)
{
    return pwrite(w->fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h);
}

static size_t size_of(size_t len)
{
    size_t whole = sizeof(struct silt_log_record) + len;
    return (whole + SILT_LOG_ALIGN - 1) / SILT_LOG_ALIGN * SILT_LOG_ALIGN;
}

/* ---- freeing space ---- */

struct look {
    uint64_t at;
    size_t len;
    char bytes[LOOK];
};

static bool find_record(int fd, const struct silt_log_head *h, struct look *l,
                        struct silt_log_record *ret)
{
    uint64_t left = h->head - h->tail;
    if (left < sizeof(*ret))
        return false;
    if (h->tail + sizeof(*ret) > l->at + l->len) {
        l->at = h->tail;
        l->len = left < LOOK ? (size_t)left : LOOK;
        if (!read_ring(fd, l->at, l->bytes, l->len))
            return false;
    }
    memcpy(ret, l->bytes + (h->tail - l->at), sizeof(*ret));
    return ret->at == h->tail && ret->len <= SILT_LOG_RECORD_MAX && size_of(ret->len) <= left;
}

/* If the file does not contain what we wrote (a disk error), it starts over. */
static void drop_oldest(int fd, struct silt_log_head *h, struct look *l)
{
    struct silt_log_record r;
    if (!find_record(fd, h, l, &r)) {
        h->dropped[0] += h->head - h->tail;
        h->tail = h->head;
        return;
    }
    if (r.stream == SILT_LOG_STDOUT || r.stream == SILT_LOG_STDERR)
        h->dropped[r.stream - 1] += r.len; /* bytes in a gap were counted when they were lost */
    h->tail += size_of(r.len);
}

static bool make_room(struct silt_log_writer *w, size_t size)
{
    struct silt_log_head h = w->head;
    struct look l = {0};
    if (h.head + size - h.tail <= SILT_LOG_RING)
        return true;
    while (h.tail < h.head && h.head + size + AHEAD - h.tail > SILT_LOG_RING)
        drop_oldest(w->fd, &h, &l);
    if (!write_head(w, &h))
        return false;
    w->head = h;
    return true;
}

/* ---- records ---- */

static bool add(struct silt_log_writer *w, enum silt_log_stream stream, uint64_t lost, size_t len)
{
    size_t size = size_of(len);
    struct silt_log_head next;
    piece.head = (struct silt_log_record){
        .at = w->head.head,
        .time_ms = silt_clock_wall_ms(),
        .lost = lost,
        .len = (uint32_t)len,
        .stream = stream,
    };
    if (len > 0)
        memset(piece.bytes + len, 0, size - sizeof(piece.head) - len);
    if (!make_room(w, size) || !write_ring(w->fd, w->head.head, &piece, size))
        return false;
    next = w->head;
    next.head += size;
    if (!write_head(w, &next))
        return false;
    w->head = next;
    return true;
}

static bool tell_gap(struct silt_log_writer *w)
{
    if (w->lost > 0 && !add(w, SILT_LOG_GAP, w->lost, 0))
        return false;
    w->lost = 0;
    return true;
}

void silt_log_writer_open(struct silt_log_writer *w, int fd)
{
    struct silt_log_head h = {
        .magic = SILT_LOG_MAGIC, .ring_bytes = SILT_LOG_RING, .started_ms = silt_clock_wall_ms()};
    *w = (struct silt_log_writer){.fd = fd, .head = h};
    (void)write_head(w, &h); /* otherwise with the first record that fits */
}

void silt_log_writer_close(struct silt_log_writer *w)
{
    silt_close_fd(&w->fd);
}

char *silt_log_writer_room(void)
{
    return piece.bytes;
}

void silt_log_writer_put(struct silt_log_writer *w, enum silt_log_stream stream, size_t len)
{
    if (len == 0 || (tell_gap(w) && add(w, stream, 0, len)))
        return;
    w->lost += len;
    w->head.dropped[stream - 1] += len;
}

void silt_log_writer_end(struct silt_log_writer *w, const struct silt_agent_end *end)
{
    if (w->fd < 0)
        return;
    (void)tell_gap(w);
    w->head.ended = 1;
    w->head.ended_ms = silt_clock_wall_ms();
    w->head.end = *end;
    (void)write_head(w, &w->head);
}
