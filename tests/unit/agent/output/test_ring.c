/* SPDX-License-Identifier: Apache-2.0 */
/* The log's writer, without a process. */
#include "agent/output/log.h"
#include "base/own.h"
#include "unit/agent/reader.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Byte n of a stream: a reader can tell whether it has the right ones. */
static char byte_of(uint64_t n)
{
    return (char)(n * 2654435761U >> 13);
}

static struct silt_log_writer open_writer(void)
{
    struct silt_log_writer w;
    silt_log_writer_open(&w, memfd_create("log", MFD_CLOEXEC));
    return w;
}

static void put(struct silt_log_writer *w, enum silt_log_stream stream, uint64_t from, size_t len)
{
    char *room = silt_log_writer_room();
    for (size_t i = 0; i < len; i++)
        room[i] = byte_of(from + i);
    silt_log_writer_put(w, stream, len);
}

static void check_bytes(const struct reader_record *r, uint64_t from)
{
    for (size_t i = 0; i < r->head.len; i++)
        if (r->bytes[i] != byte_of(from + i))
            fail_msg("byte %llu of the stream is wrong", (unsigned long long)(from + i));
}

static uint32_t random_state = 12345;

static uint32_t next_random(void)
{
    return random_state = random_state * 1664525 + 1013904223, random_state >> 8;
}

TEST(log_has_a_head_from_the_beginning)
{
    struct silt_log_writer w = open_writer();
    struct silt_log_head h = reader_head(w.fd);
    assert_int_equal(h.ring_bytes, SILT_LOG_RING);
    assert_int_equal(h.head, 0);
    assert_int_equal(h.ended, 0);
    assert_true(h.started_ms > 0);
    silt_log_writer_close(&w);
}

TEST(log_keeps_streams_in_order_and_its_end)
{
    struct silt_log_writer w = open_writer();
    struct reader r = {.fd = w.fd};
    struct reader_record rec;
    struct silt_agent_end end = {.code = 7, .flags = SILT_END_TIMEOUT};
    put(&w, SILT_LOG_STDOUT, 0, 3);
    put(&w, SILT_LOG_STDERR, 100, 8);
    put(&w, SILT_LOG_STDOUT, 3, 0);
    silt_log_writer_end(&w, &end);
    assert_int_equal(reader_next(&r, &rec), 1);
    assert_int_equal(rec.head.stream, SILT_LOG_STDOUT);
    assert_int_equal(rec.head.len, 3);
    check_bytes(&rec, 0);
    assert_int_equal(reader_next(&r, &rec), 1);
    assert_int_equal(rec.head.stream, SILT_LOG_STDERR);
    assert_int_equal(rec.head.at, 40);
    check_bytes(&rec, 100);
    assert_true(rec.head.time_ms > 0);
    assert_int_equal(reader_next(&r, &rec), 0);
    struct silt_log_head h = reader_head(w.fd);
    assert_int_equal(h.ended, 1);
    assert_int_equal(h.end.code, 7);
    assert_int_equal(h.end.flags, SILT_END_TIMEOUT);
    assert_true(h.ended_ms >= h.started_ms);
    silt_log_writer_close(&w);
}

/* Writes about `total` bytes to both streams in pieces of random size up to `most`. */
static void write_much(struct silt_log_writer *w, uint64_t total, uint32_t most, uint64_t sent[2])
{
    while (sent[0] + sent[1] < total) {
        unsigned s = next_random() % 4 == 0;
        size_t len = 1 + next_random() % most;
        put(w, s + 1, sent[s], len);
        sent[s] += len;
    }
}

static void check_ring(struct silt_log_writer *w, const uint64_t sent[2])
{
    static struct reader_record rec;
    struct silt_log_head h = reader_head(w->fd);
    struct reader r = {.fd = w->fd, .at = h.tail};
    uint64_t seen[2] = {h.dropped[0], h.dropped[1]};
    while (reader_next(&r, &rec) == 1) {
        check_bytes(&rec, seen[rec.head.stream - 1]);
        seen[rec.head.stream - 1] += rec.head.len;
    }
    assert_int_equal(r.at, h.head);
    assert_int_equal(seen[0], sent[0]);
    assert_int_equal(seen[1], sent[1]);
    assert_true(h.head - h.tail <= SILT_LOG_RING);
    assert_true(h.head < SILT_LOG_RING || h.head - h.tail >= SILT_LOG_UNREAD_MAX);
    assert_true(lseek(w->fd, 0, SEEK_END) <= SILT_LOG_HEAD_SIZE + SILT_LOG_RING);
}

TEST(log_of_three_rings_ends_with_exactly_the_newest_bytes_and_counts_the_others)
{
    struct silt_log_writer w = open_writer();
    uint64_t sent[2] = {0};
    write_much(&w, 3ULL * SILT_LOG_RING, SILT_LOG_RECORD_MAX, sent);
    check_ring(&w, sent);
    silt_log_writer_close(&w);
}

TEST(log_of_many_tiny_writes_wraps_at_every_alignment)
{
    struct silt_log_writer w = open_writer();
    uint64_t sent[2] = {0};
    write_much(&w, SILT_LOG_RING, 60, sent);
    check_ring(&w, sent);
    silt_log_writer_close(&w);
}

TEST(log_that_follows_many_tiny_writes_with_large_ones_drops_the_right_ones)
{
    struct silt_log_writer w = open_writer();
    uint64_t sent[2] = {0};
    write_much(&w, 8 << 20, 8, sent);
    check_ring(&w, sent);
    write_much(&w, 40 << 20, SILT_LOG_RECORD_MAX, sent);
    check_ring(&w, sent);
    silt_log_writer_close(&w);
}

/* The soft limit of a file's size plays the full disk. */
static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static uint64_t read_gap(int fd, uint64_t *ret_gaps)
{
    static struct reader_record rec;
    struct reader r = {.fd = fd};
    uint64_t lost = 0;
    *ret_gaps = 0;
    while (reader_next(&r, &rec) == 1) {
        *ret_gaps += rec.head.stream == SILT_LOG_GAP;
        lost += rec.head.lost;
    }
    return lost;
}

TEST(log_on_a_full_disk_loses_output_counts_it_and_tells_the_gap_when_there_is_room)
{
    struct silt_log_writer w = open_writer();
    uint64_t gaps;
    (void)signal(SIGXFSZ, SIG_IGN);
    put(&w, SILT_LOG_STDOUT, 0, 1000);
    limit_files(SILT_LOG_HEAD_SIZE + 3000);
    for (int i = 0; i < 10; i++)
        put(&w, SILT_LOG_STDOUT, 0, 5000);
    put(&w, SILT_LOG_STDERR, 0, 5000);
    assert_int_equal(w.lost, 5000); /* gaps themselves fit in a while longer */
    assert_int_equal(w.head.dropped[0], 50000);
    limit_files(RLIM_INFINITY);
    put(&w, SILT_LOG_STDOUT, 50000, 10);
    struct silt_log_head h = reader_head(w.fd);
    assert_int_equal(h.dropped[0], 50000);
    assert_int_equal(h.dropped[1], 5000);
    assert_int_equal(read_gap(w.fd, &gaps), 55000);
    silt_log_writer_close(&w);
}

TEST(log_on_a_disk_that_takes_nothing_tells_one_gap)
{
    struct silt_log_writer w = open_writer();
    uint64_t gaps;
    (void)signal(SIGXFSZ, SIG_IGN);
    put(&w, SILT_LOG_STDOUT, 0, 1000);
    limit_files(100);
    for (int i = 0; i < 10; i++)
        put(&w, SILT_LOG_STDOUT, 0, 5000);
    limit_files(RLIM_INFINITY);
    silt_log_writer_end(&w, &(struct silt_agent_end){.code = 1});
    struct silt_log_head h = reader_head(w.fd);
    assert_int_equal(h.dropped[0], 50000);
    assert_int_equal(h.ended, 1);
    assert_int_equal(read_gap(w.fd, &gaps), 50000);
    assert_int_equal(gaps, 1);
    silt_log_writer_close(&w);
}

/* ---- a reader beside a writer ---- */

/* Every byte follows from its position. */
static _Noreturn void be_writer(struct silt_log_writer *w)
{
    while (w->head.head < 8ULL * SILT_LOG_RING) {
        uint32_t len = next_random() % 20000;
        put(w, 1 + next_random() % 2, w->head.head, len);
    }
    silt_log_writer_end(w, &(struct silt_agent_end){0});
    _exit(0);
}

TEST(log_never_shows_wrong_bytes_to_a_reader_that_is_overtaken)
{
    static struct reader_record rec;
    struct silt_log_writer w = open_writer();
    struct reader r = {.fd = w.fd};
    unsigned records = 0, gone = 0;
    pid_t pid = fork();
    if (pid == 0)
        be_writer(&w);
    for (;;) {
        bool ended = reader_head(w.fd).ended == 1;
        int got = reader_next(&r, &rec);
        if (got == 0 && ended)
            break;
        gone += got < 0;
        if (got <= 0)
            continue;
        check_bytes(&rec, rec.head.at);
        if (++records % 64 == 0 && gone < 8)
            (void)usleep(20000); /* falls behind */
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(r.at, reader_head(w.fd).head);
    assert_true(records > 0);
    silt_log_writer_close(&w);
}
