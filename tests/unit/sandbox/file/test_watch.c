/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and waits for ports; the test plays silt-init and its workers. */
#include "harness.h"
#include "sandbox/process/port_wait.h"
#include "sandbox/file/watch.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/socket.h>

struct ear {
    struct silt_listener listener;
    int ready, events, ended;
    uint32_t what;
    char path[64];
    struct silt_error error;
};

static struct harness h;
static struct silt_sandbox *box;
static struct silt_error e;

static void on_ready(struct silt_listener *l)
{
    silt_outer(l, struct ear, listener)->ready++;
}

static void on_event(struct silt_listener *l, uint32_t what, bool is_dir, silt_slice path)
{
    struct ear *x = silt_outer(l, struct ear, listener);
    (void)is_dir;
    x->events++;
    x->what = what;
    (void)snprintf(x->path, sizeof(x->path), "%.*s", (int)path.len, path.data);
}

static void on_ended(struct silt_listener *l, const struct silt_error *why)
{
    struct ear *x = silt_outer(l, struct ear, listener);
    x->ended++;
    x->error = *why;
}

#define EAR                                                                                        \
    {                                                                                              \
        .listener = {.ready = on_ready, .event = on_event, .ended = on_ended }                     \
    }

static void on_box(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *why)
{
    (void)w;
    (void)why;
    box = s;
}

static void set_up(void)
{
    struct silt_priv_request q;
    static struct silt_waiter w;
    assert_int_equal(harness_open(&h), 0);
    w = (struct silt_waiter){.on_ready = on_box};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    assert_non_null(box);
}

/* Our end of the next worker that siltd asked for; -1: it asked for none. */
static int next_worker(void)
{
    struct harness_frame f;
    return harness_told(&h, &f) == SILT_AGENT_WORKER ? f.fd : -1;
}

static bool join(struct ear *x, const char *path, bool *ret_is_new)
{
    struct silt_file_watch_request q = {
        .path = silt_slice_of(path), .recursive = true, .events = SILT_WATCH_DEFAULT};
    silt_list_init(&x->listener.link);
    return silt_file_watch_join(box, &q, &x->listener, ret_is_new, &e) == 0;
}

static void send_frame(int worker, uint32_t type, uint32_t flags, const void *body, size_t len)
{
    static char out[SILT_FRAME_MAX];
    struct silt_frame f = {.type = type, .flags = flags};
    memcpy(out, &f, sizeof(f));
    memcpy(out + sizeof(f), body, len);
    assert_true(send(worker, out, sizeof(f) + len, MSG_NOSIGNAL) > 0);
    harness_turn(&h);
}

static size_t lay(char *out, uint32_t what, const char *path, size_t claimed)
{
    struct silt_worker_event v = {.what = what, .path_len = (uint32_t)claimed};
    size_t len = strlen(path), size = (sizeof(v) + len + 7) & ~(size_t)7;
    memset(out, 0, size);
    memcpy(out, &v, sizeof(v));
    memcpy(out + sizeof(v), path, len);
    return size;
}

static void tell(int worker, uint32_t what, const char *path)
{
    char body[256];
    send_frame(worker, SILT_WORKER_SAY_EVENT, what == SILT_WATCH_GONE ? SILT_WORKER_LAST : 0, body,
               lay(body, what, path, strlen(path)));
}

TEST(identical_requests_share_one_worker_until_the_last_listener_leaves)
{
    struct ear a = EAR, b = EAR, c = EAR;
    bool is_new;
    char byte;
    set_up();
    assert_true(join(&a, "/workspace", &is_new) && is_new);
    int worker = next_worker();
    assert_true(worker >= 0);
    assert_true(join(&b, "/workspace", &is_new) && !is_new);
    assert_int_equal(next_worker(), -1);
    assert_true(join(&c, "/tmp", &is_new) && is_new);
    int other = next_worker();
    tell(worker, SILT_WATCH_READY, "/workspace");
    assert_int_equal(a.ready + b.ready, 2);
    assert_int_equal(c.ready, 0);
    tell(worker, SILT_WATCH_CREATE, "/workspace/f");
    assert_int_equal(a.events + b.events, 2);
    assert_string_equal(b.path, "/workspace/f");
    assert_int_equal(silt_file_watch_count(a.listener.file_watch), 1);
    silt_file_watch_leave(&a.listener);
    tell(worker, SILT_WATCH_CREATE, "/workspace/g");
    assert_int_equal(a.events, 1);
    assert_int_equal(b.events, 2);
    silt_file_watch_leave(&b.listener);
    silt_file_watch_leave(&b.listener);
    harness_turn(&h);
    assert_true(recv(worker, &byte, 1, MSG_DONTWAIT) > 0);     /* the ask, */
    assert_int_equal(recv(worker, &byte, 1, MSG_DONTWAIT), 0); /* then the end */
    (void)close(worker);
    (void)close(other);
    harness_close(&h);
}

TEST(a_watch_that_is_asked_about_is_kept_for_a_while)
{
    struct ear a = EAR, b = EAR;
    bool is_new;
    set_up();
    assert_true(join(&a, "/workspace", &is_new));
    int worker = next_worker();
    tell(worker, SILT_WATCH_READY, "/workspace");
    silt_file_watch_keep(a.listener.file_watch);
    silt_file_watch_leave(&a.listener);
    assert_true(join(&b, "/workspace", &is_new) && !is_new);
    silt_file_watch_leave(&b.listener);
    struct silt_timer *keep = NULL;
    for (size_t i = 1; i <= h.loop.timers; i++)
        if (h.loop.heap[i]->at_ms > h.loop.now_ms + SILT_WATCH_KEPT_MS / 2)
            keep = h.loop.heap[i];
    assert_non_null(keep);
    silt_loop_after(&h.loop, keep, 0); /* ten minutes later */
    assert_int_equal(silt_loop_turn(&h.loop, 20, &e), 0);
    harness_turn(&h);
    assert_true(join(&b, "/workspace", &is_new) && is_new);
    (void)close(worker);
    harness_close(&h);
}

TEST(the_end_is_told_to_all_and_a_new_watch_can_begin_meanwhile)
{
    struct ear a = EAR, b = EAR;
    bool is_new;
    set_up();
    assert_true(join(&a, "/workspace/d", &is_new) && join(&b, "/workspace/d", &is_new));
    int worker = next_worker();
    tell(worker, SILT_WATCH_READY, "/workspace/d");
    tell(worker, SILT_WATCH_GONE, "/workspace/d");
    assert_int_equal(a.ended + b.ended, 2);
    assert_int_equal(a.error.code, SILT_NOT_FOUND);
    assert_null(a.listener.file_watch);
    assert_true(join(&a, "/workspace/d", &is_new) && is_new);
    (void)close(worker);
    harness_turn(&h);
    harness_close(&h);
}

TEST(a_worker_that_lies_harms_its_own_watch_only)
{
    static const struct {
        uint32_t type, what;
        const char *path;
        size_t claimed;
    } lies[] = {
        {SILT_WORKER_SAY_EVENT, 3, "/a", 2},      {SILT_WORKER_SAY_EVENT, 0, "/a", 2},
        {SILT_WORKER_SAY_EVENT, 1024, "/a", 2},   {SILT_WORKER_SAY_EVENT, 1, "a", 1},
        {SILT_WORKER_SAY_EVENT, 1, "/a", 0},      {SILT_WORKER_SAY_EVENT, 1, "/a", 200},
        {SILT_WORKER_SAY_EVENT, 1, "/a", 999999}, {SILT_WORKER_SAY_EVENT, 1, "/a", 6},
        {SILT_WORKER_SAY_DATA, 1, "/a", 2},       {SILT_WORKER_SAY_META, 1, "/a", 2},
    };
    for (size_t i = 0; i < SILT_COUNT(lies); i++) {
        struct ear a = EAR, honest = EAR;
        char body[256];
        bool is_new;
        set_up();
        assert_true(join(&a, "/workspace", &is_new));
        int worker = next_worker();
        assert_true(join(&honest, "/tmp", &is_new));
        int other = next_worker();
        send_frame(worker, lies[i].type, 0, body,
                   lay(body, lies[i].what, lies[i].path, lies[i].claimed));
        assert_int_equal(a.ended, 1);
        assert_int_equal(a.error.code, SILT_PROTOCOL);
        tell(other, SILT_WATCH_READY, "/tmp");
        assert_int_equal(honest.ready, 1);
        (void)close(worker);
        (void)close(other);
        harness_close(&h);
    }
}

TEST(a_flood_is_held_back_and_goes_on_later)
{
    struct ear a = EAR;
    bool is_new;
    static char body[SILT_FRAME_BODY_MAX];
    size_t len = 0;
    set_up();
    assert_true(join(&a, "/workspace", &is_new));
    int worker = next_worker();
    tell(worker, SILT_WATCH_READY, "/workspace");
    while (len + 64 < sizeof(body))
        len += lay(body + len, SILT_WATCH_MODIFY, "/workspace/f", 12);
    assert_int_equal(fcntl(worker, F_SETFL, O_NONBLOCK), 0);
    struct silt_frame f = {.type = SILT_WORKER_SAY_EVENT};
    static char out[SILT_FRAME_MAX];
    memcpy(out, &f, sizeof(f));
    memcpy(out + sizeof(f), body, len);
    int sent = 0;
    while (sent < 20 && send(worker, out, sizeof(f) + len, MSG_NOSIGNAL) > 0) {
        sent++;
        harness_turn(&h);
    }
    assert_true(sent < 20);
    int64_t end = h.loop.now_ms + 2000;
    int events = a.events;
    while (a.events <= events && h.loop.now_ms < end)
        assert_int_equal(silt_loop_turn(&h.loop, 5, &e), 0);
    assert_true(a.events > events);
    (void)close(worker);
    harness_close(&h);
}

TEST(watches_that_nobody_listens_to_make_room)
{
    struct ear kept[SILT_WORKER_WATCHES_MAX], one_more = EAR;
    int workers[SILT_WORKER_WATCHES_MAX];
    bool is_new;
    char path[32];
    set_up();
    for (int i = 0; i < SILT_WORKER_WATCHES_MAX; i++) {
        kept[i] = (struct ear)EAR;
        (void)snprintf(path, sizeof(path), "/workspace/%d", i);
        assert_true(join(&kept[i], path, &is_new));
        workers[i] = next_worker();
    }
    assert_false(join(&one_more, "/tmp", &is_new));
    assert_int_equal(e.code, SILT_LIMIT);
    silt_file_watch_keep(kept[7].listener.file_watch);
    silt_file_watch_leave(&kept[7].listener);
    assert_true(join(&one_more, "/tmp", &is_new) && is_new);
    for (int i = 0; i < SILT_WORKER_WATCHES_MAX; i++)
        (void)close(workers[i]);
    harness_turn(&h);
    harness_close(&h);
}

/* ---- ports ---- */

static struct {
    int reached, exited, failed;
    uint32_t status;
    enum silt_code code;
} port;

static void on_reached(struct silt_port_wait *w, uint32_t status)
{
    (void)w;
    port.reached++;
    port.status = status;
}

static void on_exited(struct silt_port_wait *w, int32_t code)
{
    (void)w;
    (void)code;
    port.exited++;
}

static void on_failed(struct silt_port_wait *w, const struct silt_error *why)
{
    (void)w;
    port.failed++;
    port.code = why->code;
}

TEST(a_port_is_reached_when_the_worker_says_so_and_in_no_other_way)
{
    struct silt_worker_done done = {.status = 204};
    struct silt_port_request q = {.port = 80, .http = true, .path = SILT_LIT("/")};
    struct silt_port_wait w = {.reached = on_reached, .exited = on_exited, .failed = on_failed};
    set_up();
    for (int i = 0; i < 4; i++) {
        memset(&port, 0, sizeof(port));
        assert_int_equal(silt_port_wait_start(&w, box, &q, &e), 0);
        int worker = next_worker();
        assert_true(worker >= 0);
        if (i == 0)
            send_frame(worker, SILT_WORKER_SAY_DONE, SILT_WORKER_LAST, &done, sizeof(done));
        else if (i == 1)
            send_frame(worker, SILT_WORKER_SAY_DONE, 0, &done, sizeof(done));
        else if (i == 2)
            send_frame(worker, SILT_WORKER_SAY_DATA, SILT_WORKER_LAST, &done, 3);
        (void)close(worker);
        harness_turn(&h);
        assert_int_equal(port.reached, i == 0);
        assert_int_equal(port.failed, i != 0);
        assert_int_equal(port.status, i == 0 ? 204 : 0);
        silt_port_wait_leave(&w);
    }
    assert_int_equal(box->work.longs, 0);
    harness_close(&h);
}
