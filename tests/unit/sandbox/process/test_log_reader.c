/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of logs, against files that are written here, rightly and wrongly. */
#include "base/own.h"
#include "sandbox/process/log_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { RING = 64 << 10 };

static int fd = -1;
static struct silt_log_head head;
static char bytes[SILT_LOG_BATCH];

static void put(const void *data, size_t len, off_t at)
{
    assert_int_equal(pwrite(fd, data, len, at), (ssize_t)len);
}

static void put_head(void)
{
    put(&head, sizeof(head), 0);
}

static int set_up(void **state)
{
    (void)state;
    fd = memfd_create("log", MFD_CLOEXEC);
    head = (struct silt_log_head){.magic = SILT_LOG_MAGIC, .ring_bytes = RING};
    put_head();
    return fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    silt_close_fd(&fd);
    return 0;
}

static void put_ring(const char *data, size_t len, uint64_t at)
{
    for (size_t i = 0; i < len; i++)
        put(data + i, 1, (off_t)(SILT_LOG_HEAD_SIZE + (at + i) % RING));
}

static size_t size_of(size_t len)
{
    return (sizeof(struct silt_log_record) + len + 7) / 8 * 8;
}

/* As silt-init does it, with the tail moved by hand. */
static void write_record(uint32_t stream, const char *text)
{
    struct silt_log_record r = {
        .at = head.head, .time_ms = 7, .len = (uint32_t)strlen(text), .stream = stream};
    char whole[4096] = {0};
    memcpy(whole, &r, sizeof(r));
    memcpy(whole + sizeof(r), text, r.len);
    put_ring(whole, size_of(r.len), head.head);
    head.head += size_of(r.len);
    put_head();
}

static enum silt_log_reader_found fetch(uint64_t at, struct silt_log_reader_batch *b)
{
    *b = (struct silt_log_reader_batch){.bytes = bytes};
    return silt_log_reader_fetch(fd, at, true, b);
}

static void an_unwritten_log_is_empty(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_head h;
    (void)state;
    assert_int_equal(fetch(0, &b), SILT_LOG_DRY);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(fetch(0, &b), SILT_LOG_DRY);
    assert_int_equal(silt_log_reader_look(fd, true, &h), SILT_LOG_FOUND);
    assert_int_equal(silt_log_reader_size(&h), 0);
    assert_int_equal(fetch(8, &b), SILT_LOG_WRONG);
}

static void records_come_in_order_with_cursors_to_go_on_from(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_reader_piece p;
    (void)state;
    write_record(SILT_LOG_STDOUT, "one");
    write_record(SILT_LOG_STDERR, "twelve");
    assert_int_equal(fetch(0, &b), SILT_LOG_FOUND);
    assert_int_equal(silt_log_reader_next(&b, &p), 1);
    assert_int_equal(p.stream, SILT_LOG_STDOUT);
    assert_memory_equal(p.bytes.data, "one", 3);
    assert_int_equal(p.bytes.len, 3);
    assert_int_equal(p.time_ms, 7);
    uint64_t between = p.after;
    assert_int_equal(silt_log_reader_next(&b, &p), 1);
    assert_int_equal(p.stream, SILT_LOG_STDERR);
    assert_int_equal(p.after, head.head);
    assert_int_equal(silt_log_reader_next(&b, &p), 0);
    assert_int_equal(fetch(between, &b), SILT_LOG_FOUND);
    assert_int_equal(silt_log_reader_next(&b, &p), 1);
    assert_memory_equal(p.bytes.data, "twelve", 6);
    assert_int_equal(fetch(head.head, &b), SILT_LOG_DRY);
}

static void a_record_may_go_over_the_end_of_the_ring(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_reader_piece p;
    (void)state;
    head.head = head.tail = 3 * (uint64_t)RING - 40;
    put_head();
    write_record(SILT_LOG_STDOUT, "0123456789abcdef0123456789");
    assert_int_equal(fetch(SILT_LOG_OLDEST, &b), SILT_LOG_FOUND);
    assert_int_equal(silt_log_reader_next(&b, &p), 1);
    assert_memory_equal(p.bytes.data, "0123456789abcdef0123456789", 26);
    assert_int_equal(p.after, head.head);
}

static void what_was_overwritten_is_told(void **state)
{
    struct silt_log_reader_batch b;
    (void)state;
    write_record(SILT_LOG_STDOUT, "old");
    head.tail = head.head;
    put_head();
    assert_int_equal(fetch(0, &b), SILT_LOG_GONE);
    assert_int_equal(b.head.tail, head.tail);
}

static void a_cursor_that_is_no_beginning_is_found_out(void **state)
{
    struct silt_log_reader_batch b;
    (void)state;
    write_record(SILT_LOG_STDOUT, "0123456789abcdef");
    write_record(SILT_LOG_STDOUT, "x");
    for (uint64_t at = 1; at < head.head; at++)
        if (at != size_of(16))
            assert_int_equal(fetch(at, &b), SILT_LOG_WRONG);
    assert_int_equal(fetch(head.head + 8, &b), SILT_LOG_WRONG);
}

/* Each of these is one lie of a writer. */
static void a_head_that_cannot_be_is_broken(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_head h;
    const struct silt_log_head good = {
        .magic = SILT_LOG_MAGIC, .ring_bytes = RING, .head = 800, .tail = 400};
    (void)state;
    for (int lie = 0; lie < 9; lie++) {
        head = good;
        head.magic += lie == 0;
        head.ring_bytes = lie == 1 ? 0 : lie == 2 ? UINT64_MAX : lie == 3 ? RING + 4 : RING;
        head.tail = lie == 4 ? 808 : lie == 5 ? 401 : 400;
        head.head = lie == 6 ? 400 + RING + 8 : lie == 7 ? 801 : lie == 8 ? UINT64_MAX - 7 : 800;
        put_head();
        assert_int_equal(silt_log_reader_look(fd, true, &h), SILT_LOG_BROKEN);
        assert_int_equal(silt_log_reader_look(fd, false, &h), SILT_LOG_LATER);
        assert_int_equal(fetch(400, &b), SILT_LOG_BROKEN);
    }
}

static void a_record_that_cannot_be_is_broken(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_reader_piece p;
    struct silt_log_record r;
    (void)state;
    write_record(SILT_LOG_STDOUT, "good");
    uint64_t at = head.head;
    write_record(SILT_LOG_STDOUT, "bad");
    for (int lie = 0; lie < 4; lie++) {
        r = (struct silt_log_record){.at = at, .len = 3, .stream = SILT_LOG_STDOUT};
        r.stream = lie == 0 ? 0 : lie == 1 ? 4 : r.stream;
        r.len = lie == 2 ? SILT_LOG_RECORD_MAX + 1 : lie == 3 ? 9 : r.len;
        put_ring((const char *)&r, sizeof(r), at);
        assert_int_equal(fetch(0, &b), SILT_LOG_FOUND);
        assert_int_equal(silt_log_reader_next(&b, &p), 1);
        assert_int_equal(silt_log_reader_next(&b, &p), -1);
    }
    assert_int_equal(fetch(at, &b), SILT_LOG_BROKEN);
}

static void a_file_that_is_too_short_is_broken(void **state)
{
    struct silt_log_reader_batch b;
    (void)state;
    head.head = 4000;
    put_head();
    assert_int_equal(fetch(0, &b), SILT_LOG_BROKEN);
}

static void a_batch_ends_before_a_record_that_is_not_whole_in_it(void **state)
{
    struct silt_log_reader_batch b;
    struct silt_log_reader_piece p;
    char text[4001];
    uint64_t seen = 0;
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[4000] = 0;
    for (int i = 0; i < 16; i++)
        write_record(SILT_LOG_STDOUT, text);
    while (fetch(seen, &b) == SILT_LOG_FOUND)
        while (silt_log_reader_next(&b, &p) == 1)
            seen = p.after;
    assert_int_equal(seen, head.head);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_unwritten_log_is_empty),
        T(records_come_in_order_with_cursors_to_go_on_from),
        T(a_record_may_go_over_the_end_of_the_ring),
        T(what_was_overwritten_is_told),
        T(a_cursor_that_is_no_beginning_is_found_out),
        T(a_head_that_cannot_be_is_broken),
        T(a_record_that_cannot_be_is_broken),
        T(a_file_that_is_too_short_is_broken),
        T(a_batch_ends_before_a_record_that_is_not_whole_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
