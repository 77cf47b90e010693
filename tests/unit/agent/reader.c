/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/agent/reader.h"

#include <stdlib.h>
#include <unistd.h>

struct silt_log_head reader_head(int fd)
{
    struct silt_log_head h = {0};
    if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || h.magic != SILT_LOG_MAGIC)
        fail_msg("the log has no head");
    assert_true(h.tail <= h.head && h.head - h.tail <= h.ring_bytes);
    return h;
}

static void read_ring(int fd, uint64_t at, char *to, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint64_t place = (at + i) % SILT_LOG_RING;
        size_t n = len - i < SILT_LOG_RING - place ? len - i : (size_t)(SILT_LOG_RING - place);
        ssize_t got = pread(fd, to + i, n, (off_t)(SILT_LOG_HEAD_SIZE + place));
        assert_true(got > 0);
        i += (size_t)got;
    }
}

static bool is_gone(struct reader *r)
{
    uint64_t tail = reader_head(r->fd).tail;
    if (r->at >= tail)
        return false;
    r->at = tail;
    return true;
}

int reader_next(struct reader *r, struct reader_record *ret)
{
    struct silt_log_head h = reader_head(r->fd);
    if (is_gone(r))
        return -1;
    if (r->at == h.head)
        return 0;
    read_ring(r->fd, r->at, (char *)&ret->head, sizeof(ret->head));
    if (is_gone(r))
        return -1;
    /* It was there before and after: it is what was written. */
    assert_int_equal(ret->head.at, r->at);
    assert_true(ret->head.len <= SILT_LOG_RECORD_MAX && ret->head.stream >= SILT_LOG_STDOUT
                && ret->head.stream <= SILT_LOG_GAP);
    read_ring(r->fd, r->at + sizeof(ret->head), ret->bytes, ret->head.len);
    if (is_gone(r))
        return -1;
    r->at += (sizeof(ret->head) + ret->head.len + 7) / 8 * 8;
    return 1;
}

static void add(char **text, size_t *len, const struct reader_record *r)
{
    *text = realloc(*text, *len + r->head.len + 1);
    memcpy(*text + *len, r->bytes, r->head.len);
    *len += r->head.len;
    (*text)[*len] = 0;
}

uint64_t reader_all(int fd, char **ret_out, char **ret_err)
{
    static struct reader_record record;
    struct reader r = {.fd = fd, .at = reader_head(fd).tail};
    size_t out_len = 0, err_len = 0;
    uint64_t lost = 0;
    *ret_out = calloc(1, 1);
    *ret_err = calloc(1, 1);
    while (reader_next(&r, &record) == 1) {
        if (record.head.stream == SILT_LOG_STDOUT)
            add(ret_out, &out_len, &record);
        else if (record.head.stream == SILT_LOG_STDERR)
            add(ret_err, &err_len, &record);
        lost += record.head.lost;
    }
    return lost;
}
