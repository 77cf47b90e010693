/* SPDX-License-Identifier: Apache-2.0 */
/* The test plays silt-init and its workers. */
#include "sandbox/file/worker_pool.h"
#include "harness.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { PATIENCE_MS = 300 }; /* so that this machine may stand still for a while */

struct note {
    struct silt_work_sink sink;
    struct silt_work *work;
    int said, lasts, failed, rooms;
    size_t bytes;
    struct silt_error error;
};

static struct harness h;
static struct silt_sandbox *box;

static void on_said(struct silt_work_sink *sink, enum silt_worker_say type, silt_slice body,
                    bool last)
{
    struct note *n = silt_outer(sink, struct note, sink);
    (void)type;
    n->said++;
    n->bytes += body.len;
    n->lasts += last;
}

static void on_failed(struct silt_work_sink *sink, const struct silt_error *e)
{
    struct note *n = silt_outer(sink, struct note, sink);
    n->failed++;
    n->error = *e;
}

static void on_room(struct silt_work_sink *sink)
{
    silt_outer(sink, struct note, sink)->rooms++;
}

#define NOTE                                                                                       \
    {                                                                                              \
        .sink = {.said = on_said, .failed = on_failed, .room = on_room }                           \
    }

static void begin(struct note *n, uint32_t op, uint32_t patience_ms)
{
    struct silt_error e;
    struct silt_work_request q = {.kind =
                                      op == SILT_WORKER_WATCH ? SILT_WORK_LONG : SILT_WORK_SHORT,
                                  .op = op,
                                  .path = SILT_LIT("/a"),
                                  .cwd = SILT_LIT("/workspace"),
                                  .text = SILT_LIT("text"),
                                  .patience_ms = patience_ms};
    assert_int_equal(silt_work_start(box, &q, &n->sink, &n->work, &e), 0);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    (void)e;
    box = s;
}

static void set_up(void)
{
    struct silt_priv_request q;
    static struct silt_waiter w;
    assert_int_equal(harness_open(&h), 0);
    w = (struct silt_waiter){.on_ready = on_ready};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    assert_non_null(box);
}

/* Our end of the next worker that siltd asked for; -1: it asked for none. */
static int next_worker(uint64_t *ret_id)
{
    struct harness_frame f;
    uint32_t type = harness_told(&h, &f);
    if (type == 0)
        return -1;
    assert_int_equal(type, SILT_AGENT_WORKER);
    assert_true(f.fd >= 0);
    assert_int_equal(fcntl(f.fd, F_SETFL, O_NONBLOCK), 0);
    if (ret_id != NULL)
        *ret_id = f.frame.id;
    return f.fd;
}

static uint32_t hears(int worker, silt_slice *ret_body, uint32_t *ret_flags)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } in;
    harness_turn(&h);
    ssize_t n = recv(worker, in.bytes, sizeof(in.bytes), 0);
    if (n < (ssize_t)sizeof(struct silt_frame))
        return 0;
    if (ret_body != NULL)
        *ret_body = (silt_slice){in.frame.body, (size_t)n - sizeof(struct silt_frame)};
    if (ret_flags != NULL)
        *ret_flags = in.frame.flags;
    return in.frame.type;
}

static bool is_closed(int worker)
{
    char byte;
    harness_turn(&h);
    return recv(worker, &byte, 1, MSG_PEEK) == 0;
}

static void says(int worker, uint32_t type, uint32_t flags, const void *body, size_t len)
{
    struct {
        struct silt_frame frame;
        char body[1024];
    } out = {.frame = {.type = type, .flags = flags}};
    memcpy(out.frame.body, body, len);
    assert_true(send(worker, &out, sizeof(out.frame) + len, MSG_NOSIGNAL) > 0);
    harness_turn(&h);
}

static void done(int worker)
{
    struct silt_worker_done d = {0};
    says(worker, SILT_WORKER_SAY_DONE, SILT_WORKER_LAST, &d, sizeof(d));
}

static void wait_ms(int ms)
{
    struct silt_error e;
    int64_t end = h.loop.now_ms + ms;
    while (h.loop.now_ms < end)
        assert_int_equal(silt_loop_turn(&h.loop, 5, &e), 0);
}

TEST(an_operation_is_one_frame_and_its_worker_serves_the_next_one)
{
    struct note a = NOTE, b = NOTE;
    struct silt_worker_ask ask;
    silt_slice body;
    set_up();
    begin(&a, SILT_WORKER_STAT, 0);
    int worker = next_worker(NULL);
    assert_int_equal(hears(worker, &body, NULL), SILT_WORKER_STAT);
    memcpy(&ask, body.data, sizeof(ask));
    assert_int_equal(body.len, sizeof(ask) + 10 + 2 + 4);
    assert_memory_equal(body.data + sizeof(ask), "/workspace/atext", 16);
    assert_int_equal(ask.cwd_len + ask.path_len + ask.to_len + ask.text_len, 16);
    says(worker, SILT_WORKER_SAY_DATA, 0, "abc", 3);
    done(worker);
    assert_int_equal(a.said, 2);
    assert_int_equal(a.lasts, 1);
    assert_int_equal(a.bytes, 3 + sizeof(struct silt_worker_done));
    begin(&b, SILT_WORKER_STAT, 0);
    assert_int_equal(next_worker(NULL), -1);
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_STAT);
    done(worker);
    assert_int_equal(b.lasts, 1);
    (void)close(worker);
    harness_close(&h);
}

TEST(sixteen_work_at_once_and_the_others_wait_for_their_turn)
{
    struct note notes[40];
    int workers[16];
    set_up();
    for (size_t i = 0; i < SILT_COUNT(notes); i++) {
        notes[i] = (struct note)NOTE;
        begin(&notes[i], SILT_WORKER_STAT, 0);
    }
    for (size_t i = 0; i < 16; i++)
        workers[i] = next_worker(NULL);
    assert_int_equal(next_worker(NULL), -1);
    assert_int_equal(box->work.waiting_count, 24);
    for (size_t served = 0; served < SILT_COUNT(notes); served++) {
        assert_int_equal(hears(workers[served % 16], NULL, NULL), SILT_WORKER_STAT);
        done(workers[served % 16]);
    }
    for (size_t i = 0; i < SILT_COUNT(notes); i++)
        assert_int_equal(notes[i].lasts, 1);
    size_t kept = 0;
    for (size_t i = 0; i < 16; i++)
        kept += !is_closed(workers[i]);
    assert_int_equal(kept, 2);
    assert_int_equal(box->work.count, 2);
    for (size_t i = 0; i < 16; i++)
        (void)close(workers[i]);
    harness_close(&h);
}

TEST(a_silent_worker_is_killed_and_its_caller_told)
{
    enum { SLOW_MS = 300 }; /* so that this machine may stand still for a while */
    struct note a = NOTE;
    struct harness_frame f;
    uint64_t id;
    set_up();
    begin(&a, SILT_WORKER_STAT, SLOW_MS);
    int worker = next_worker(&id);
    wait_ms(SLOW_MS / 2);
    says(worker, SILT_WORKER_SAY_DATA, 0, "x", 1); /* it lives: patience begins anew */
    wait_ms(SLOW_MS / 2);
    says(worker, SILT_WORKER_SAY_DATA, 0, "", 0); /* it still lives, and has nothing to say */
    assert_int_equal(a.said, 1);
    assert_int_equal(a.failed, 0);
    int64_t since = h.loop.now_ms;
    while (a.failed == 0)
        wait_ms(1);
    assert_true(h.loop.now_ms - since >= SLOW_MS - 1);
    assert_int_equal(a.error.code, SILT_TIMEOUT);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_WORKER_KILL);
    assert_int_equal(f.frame.id, id);
    assert_int_equal(box->work.count, 0);
    (void)close(worker);
    harness_close(&h);
}

TEST(who_waits_for_a_worker_has_patience_too)
{
    struct note busy[16], late = NOTE;
    int workers[16];
    set_up();
    for (size_t i = 0; i < 16; i++) {
        busy[i] = (struct note)NOTE;
        begin(&busy[i], SILT_WORKER_STAT, 0);
        workers[i] = next_worker(NULL);
    }
    begin(&late, SILT_WORKER_STAT, PATIENCE_MS);
    wait_ms(2 * PATIENCE_MS);
    assert_int_equal(late.failed, 1);
    assert_int_equal(late.error.code, SILT_TIMEOUT);
    assert_int_equal(box->work.waiting_count, 0);
    for (size_t i = 0; i < 16; i++)
        (void)close(workers[i]);
    harness_turn(&h);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(busy[i].failed, 1);
    harness_close(&h);
}

TEST(an_upload_goes_as_fast_as_the_worker_reads_and_a_slow_client_is_no_silence)
{
    static const char piece[SILT_FRAME_BODY_MAX];
    struct note a = NOTE;
    uint32_t flags;
    size_t sent = 0, got = 0;
    set_up();
    begin(&a, SILT_WORKER_WRITE, PATIENCE_MS);
    int worker = next_worker(NULL);
    wait_ms(2 * PATIENCE_MS); /* the client takes its time */
    assert_int_equal(a.failed, 0);
    while (silt_work_feed(a.work, (silt_slice){piece, sizeof(piece)}, false))
        sent++;
    assert_true(sent > 0 && sent < 100);
    harness_turn(&h);
    assert_int_equal(a.rooms, 0);
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_WRITE);
    while (hears(worker, NULL, NULL) == SILT_WORKER_DATA)
        got++;
    assert_int_equal(got, sent);
    assert_int_equal(a.rooms, 1);
    wait_ms(2 * PATIENCE_MS);
    assert_int_equal(a.failed, 0);
    assert_true(silt_work_feed(a.work, SILT_LIT("end"), true));
    assert_int_equal(hears(worker, NULL, &flags), SILT_WORKER_DATA);
    assert_int_equal(flags, SILT_WORKER_LAST);
    done(worker);
    assert_int_equal(a.lasts, 1);
    assert_false(is_closed(worker));
    (void)close(worker);
    harness_close(&h);
}

TEST(a_worker_that_does_not_take_an_upload_is_ended)
{
    static const char piece[SILT_FRAME_BODY_MAX];
    struct note a = NOTE;
    set_up();
    begin(&a, SILT_WORKER_WRITE, PATIENCE_MS);
    int worker = next_worker(NULL);
    while (silt_work_feed(a.work, (silt_slice){piece, sizeof(piece)}, false))
        continue;
    wait_ms(2 * PATIENCE_MS);
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, SILT_TIMEOUT);
    (void)close(worker);
    harness_close(&h);
}

TEST(bytes_in_shared_memory_are_told_and_the_worker_has_its_patience_to_use_them)
{
    struct note a = NOTE;
    struct silt_share s = {0};
    struct silt_worker_span span;
    struct silt_error e;
    silt_slice body;
    uint32_t flags;
    set_up();
    assert_int_equal(silt_share_open(&s, 4096, &e), 0);
    begin(&a, SILT_WORKER_WRITE, PATIENCE_MS);
    silt_work_share(a.work, &s);
    int worker = next_worker(NULL);
    assert_true(silt_work_feed(a.work, (silt_slice){s.bytes + 100, 200}, false));
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_WRITE);
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_SHARE);
    assert_int_equal(hears(worker, &body, NULL), SILT_WORKER_DATA);
    assert_int_equal(body.len, sizeof(span));
    memcpy(&span, body.data, sizeof(span));
    assert_int_equal(span.offset, 100);
    assert_int_equal(span.length, 200);
    says(worker, SILT_WORKER_SAY_TAKEN, 0, "", 0);
    assert_int_equal(a.said, 1);
    wait_ms(2 * PATIENCE_MS); /* the client takes its time */
    assert_int_equal(a.failed, 0);
    assert_true(silt_work_feed(a.work, (silt_slice){s.bytes, 0}, true));
    assert_int_equal(hears(worker, NULL, &flags), SILT_WORKER_DATA);
    assert_int_equal(flags, SILT_WORKER_LAST);
    done(worker);
    assert_int_equal(a.lasts, 1);
    assert_false(is_closed(worker));
    (void)close(worker);
    silt_share_close(&s);
    harness_close(&h);
}

TEST(a_worker_that_does_not_use_shared_bytes_is_ended)
{
    struct note a = NOTE;
    struct silt_share s = {0};
    struct silt_error e;
    set_up();
    assert_int_equal(silt_share_open(&s, 4096, &e), 0);
    begin(&a, SILT_WORKER_WRITE, PATIENCE_MS);
    silt_work_share(a.work, &s);
    int worker = next_worker(NULL);
    assert_true(silt_work_feed(a.work, (silt_slice){s.bytes, 1}, false));
    wait_ms(2 * PATIENCE_MS);
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, SILT_TIMEOUT);
    (void)close(worker);
    silt_share_close(&s);
    harness_close(&h);
}

TEST(a_worker_that_says_to_have_used_what_it_was_not_given_broke_the_protocol)
{
    struct note a = NOTE;
    set_up();
    begin(&a, SILT_WORKER_WRITE, 0);
    int worker = next_worker(NULL);
    assert_true(silt_work_feed(a.work, SILT_LIT("sent, not shared"), false));
    says(worker, SILT_WORKER_SAY_TAKEN, 0, "", 0);
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, SILT_PROTOCOL);
    (void)close(worker);
    harness_close(&h);
}

TEST(an_upload_that_fails_early_does_not_leave_its_bytes_to_the_next_one)
{
    struct note a = NOTE;
    struct silt_error e;
    set_up();
    begin(&a, SILT_WORKER_WRITE, 0);
    int worker = next_worker(NULL);
    assert_true(silt_work_feed(a.work, SILT_LIT("some"), false));
    (void)silt_fail(&e, SILT_NO_SPACE, "full");
    says(worker, SILT_WORKER_SAY_FAILED, SILT_WORKER_LAST, &e, sizeof(e));
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, SILT_NO_SPACE);
    char byte;
    while (recv(worker, &byte, 1, 0) > 0)
        continue;
    assert_true(is_closed(worker));
    (void)close(worker);
    harness_close(&h);
}

TEST(a_paused_work_hears_nothing_and_its_worker_waits)
{
    struct note a = NOTE;
    char data[1000] = {0};
    int sent = 0;
    set_up();
    begin(&a, SILT_WORKER_READ, PATIENCE_MS);
    int worker = next_worker(NULL);
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_READ);
    silt_work_pause(a.work, true);
    struct silt_frame f = {.type = SILT_WORKER_SAY_DATA};
    char frame[sizeof(f) + sizeof(data)];
    memcpy(frame, &f, sizeof(f));
    memcpy(frame + sizeof(f), data, sizeof(data));
    while (send(worker, frame, sizeof(frame), MSG_NOSIGNAL) > 0)
        sent++;
    wait_ms(2 * PATIENCE_MS);
    assert_int_equal(a.said, 0);
    assert_int_equal(a.failed, 0);
    silt_work_pause(a.work, false);
    for (int i = 0; i < 100; i++)
        harness_turn(&h);
    assert_int_equal(a.said, sent);
    silt_work_leave(a.work);
    assert_true(is_closed(worker));
    (void)close(worker);
    harness_close(&h);
}

TEST(garbage_from_a_worker_fails_its_work_only)
{
    static const struct {
        uint32_t type;
        size_t len;
    } bad[] = {{0, 4},
               {99, 4},
               {SILT_WORKER_SAY_FAILED, 4},
               {SILT_WORKER_SAY_FAILED, 1000},
               {SILT_WORKER_SAY_MAX, 0}};
    char bytes[1000] = {0};
    set_up();
    for (size_t i = 0; i < SILT_COUNT(bad); i++) {
        struct note a = NOTE;
        begin(&a, SILT_WORKER_STAT, 0);
        int worker = next_worker(NULL);
        says(worker, bad[i].type, 0, bytes, bad[i].len);
        assert_int_equal(a.failed, 1);
        assert_int_equal(a.error.code, SILT_PROTOCOL);
        (void)close(worker);
        harness_turn(&h);
    }
    assert_int_equal(box->work.count, 0);
    harness_close(&h);
}

TEST(a_worker_that_died_while_it_waited_is_not_noticed_by_anyone)
{
    struct note a = NOTE, b = NOTE;
    set_up();
    begin(&a, SILT_WORKER_STAT, 0);
    int worker = next_worker(NULL);
    (void)hears(worker, NULL, NULL);
    done(worker);
    (void)close(worker);
    begin(&b, SILT_WORKER_STAT, 0); /* before the loop has seen its end */
    worker = next_worker(NULL);
    assert_int_equal(hears(worker, NULL, NULL), SILT_WORKER_STAT);
    done(worker);
    assert_int_equal(b.lasts, 1);
    (void)close(worker);
    harness_close(&h);
}

TEST(a_worker_that_silt_init_cannot_start_fails_its_work)
{
    struct note a = NOTE;
    struct silt_error e;
    uint64_t id;
    set_up();
    begin(&a, SILT_WORKER_STAT, 0);
    int worker = next_worker(&id);
    errno = EAGAIN;
    (void)silt_fail_errno(&e, "start a process");
    harness_say(&h, SILT_AGENT_FAILED, 0, id, &e, sizeof(e));
    assert_int_equal(a.failed, 1);
    assert_int_equal(a.error.code, SILT_LIMIT);
    assert_int_equal(a.error.sys, 0);
    (void)close(worker);
    harness_close(&h);
}

TEST(watches_have_their_own_limit_and_do_not_take_the_files_workers)
{
    struct note watches[SILT_WORKER_WATCHES_MAX], one_more = NOTE, file = NOTE;
    int workers[SILT_WORKER_WATCHES_MAX + 1];
    struct silt_error e;
    struct silt_work_request q = {
        .kind = SILT_WORK_LONG, .op = SILT_WORKER_WATCH, .path = SILT_LIT("/")};
    set_up();
    for (size_t i = 0; i < SILT_WORKER_WATCHES_MAX; i++) {
        watches[i] = (struct note)NOTE;
        begin(&watches[i], SILT_WORKER_WATCH, 0);
        workers[i] = next_worker(NULL);
    }
    assert_int_equal(silt_work_start(box, &q, &one_more.sink, &one_more.work, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    begin(&file, SILT_WORKER_STAT, 0);
    workers[SILT_WORKER_WATCHES_MAX] = next_worker(NULL);
    done(workers[SILT_WORKER_WATCHES_MAX]);
    assert_int_equal(file.lasts, 1);
    for (size_t i = 0; i < SILT_COUNT(workers); i++)
        (void)close(workers[i]);
    harness_close(&h);
}

TEST(when_the_sandbox_ends_everyone_is_told)
{
    struct note notes[20];
    int workers[16];
    set_up();
    for (size_t i = 0; i < SILT_COUNT(notes); i++) {
        notes[i] = (struct note)NOTE;
        begin(&notes[i], SILT_WORKER_STAT, 0);
    }
    for (size_t i = 0; i < 16; i++)
        workers[i] = next_worker(NULL);
    silt_sandbox_on_lost(box, "the test says so");
    harness_turn(&h);
    for (size_t i = 0; i < SILT_COUNT(notes); i++) {
        assert_int_equal(notes[i].failed, 1);
        assert_int_equal(notes[i].error.code, SILT_GONE);
    }
    for (size_t i = 0; i < 16; i++) {
        while (recv(workers[i], &(char){0}, 1, 0) > 0)
            continue;
        assert_true(is_closed(workers[i]));
        (void)close(workers[i]);
    }
    assert_int_equal(box->work.count, 0);
    harness_close(&h);
}
