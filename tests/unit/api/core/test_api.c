/* SPDX-License-Identifier: Apache-2.0 */
/* The routes with their peers played by the test, for what a whole instance cannot be made to do at
 * will: clients that leave, disks that are full, sandboxes that go while somebody still reads from
 * them. */
#include "api/core/api.h"
#include "base/clock.h"
#include "json/json.h"
#include "sandbox/process/process.h"
#include "unit/sandbox/harness.h"
#include "wire/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, MIB = 1 << 20 };

static struct harness h;
static struct silt_api api;
static struct silt_error e;
static struct sockaddr_un address;
static socklen_t address_len;
static int client;
static struct silt_buf answer; /* what the client has read */
static bool full;              /* the sandbox's disk */
static int log_file;           /* of the process started last */

static int set_up(void **state)
{
    const struct silt_http_limits limits = {10, 1 << 30, 10000, 10000, 10000, 10000};
    const struct silt_http_hooks hooks = {.on_request = silt_api_on_request,
                                          .on_refusal = silt_api_on_refusal,
                                          .on_answered = silt_api_on_answered,
                                          .context = &api};
    (void)state;
    if (harness_open(&h) < 0)
        return -1;
    api = (struct silt_api){.registry = &h.registry, .loop = &h.loop, .token = SILT_LIT("sesame")};
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    address_len = sizeof(address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0 /* the kernel names it */
        || getsockname(fd, (struct sockaddr *)&address, &address_len) < 0 || listen(fd, 10) < 0)
        return -1;
    silt_buf_init(&answer, 64 << 20);
    full = false;
    client = log_file = -1;
    return silt_http_server_open(&h.loop, fd, &limits, &hooks, &api.server, &e);
}

static int tear_down(void **state)
{
    (void)state;
    silt_close_fd(&client);
    harness_turn(&h);
    silt_http_server_free(api.server);
    harness_turn(&h);
    silt_buf_fini(&answer);
    silt_close_fd(&log_file);
    harness_close(&h);
    return 0;
}

/* silt-priv does what it is asked; a spool is a file of ours, which can be full, and so is a log.
 */
static void serve_priv(void)
{
    struct silt_priv_request q;
    while (harness_asked(&h, &q)) {
        struct silt_priv_answer a = {.seq = q.seq, .slot = q.slot, .ok = 1};
        struct silt_parcel p = {.data = &a, .len = sizeof(a)};
        if (q.op != SILT_PRIV_SPOOL && q.op != SILT_PRIV_LOG) {
            harness_answer(&h, &q, true);
            continue;
        }
        p.fds[p.nfds++] = memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (q.op == SILT_PRIV_LOG) {
            silt_close_fd(&log_file);
            log_file = dup(p.fds[0]);
        }
        if (full)
            assert_int_equal(fcntl(p.fds[0], F_ADD_SEALS, F_SEAL_GROW), 0);
        assert_int_equal(silt_fd_send(h.priv, &p, &e), 0);
        silt_parcel_close(&p);
    }
}

static void ask(const char *method, const char *path, const char *body)
{
    char text[2048];
    int n = snprintf(text, sizeof(text),
                     "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\nContent-Length: "
                     "%zu\r\n\r\n%s",
                     method, path, strlen(body), body);
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, address_len), 0);
    assert_int_equal(send(client, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* The same with a body that no socket holds. */
static void ask_at_length(const char *method, const char *path, const char *body)
{
    char head[256];
    size_t len = strlen(body);
    int n = snprintf(
        head, sizeof(head),
        "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\nContent-Length: %zu\r\n\r\n",
        method, path, len);
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, address_len), 0);
    assert_int_equal(send(client, head, (size_t)n, MSG_NOSIGNAL), n);
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(client, body + at, len - at, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        assert_int_equal(silt_loop_turn(&h.loop, 0, &e), 0);
    }
}

static void leave(void)
{
    silt_close_fd(&client);
    harness_turn(&h);
}

/* Reads until the text is there. */
static void await(const char *text)
{
    int64_t until = silt_clock_ms() + PATIENCE_MS;
    size_t len = strlen(text);
    while (answer.len == 0 || memmem(answer.data, answer.len, text, len) == NULL) {
        assert_true(silt_clock_ms() < until);
        assert_int_equal(silt_loop_turn(&h.loop, 1, &e), 0);
        char *at = silt_buf_room(&answer, 65536);
        ssize_t n = recv(client, at, 65536, 0);
        answer.len += n > 0 ? (size_t)n : 0;
    }
}

/* Brings the next frame of that type from siltd; others are passed over. */
static uint64_t told(uint32_t type)
{
    struct harness_frame f;
    for (;;) {
        serve_priv();
        uint32_t got = harness_told(&h, &f);
        assert_int_not_equal(got, 0);
        if (got == SILT_AGENT_HELLO)
            harness_say(&h, SILT_AGENT_WELCOME, 0, 0, f.frame.body, sizeof(uint64_t));
        if (got == type)
            return f.frame.id;
    }
}

static uint64_t start_plain(const char *path)
{
    int32_t pid = 5;
    ask("POST", path, "{\"command\":\"x\",\"sessionId\":\"__DISABLE_SESSION__\"}");
    uint64_t id = told(SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_STARTED, 0, id, &pid, sizeof(pid));
    return id;
}

/* The first output of a process: one record in its log. */
static void log_output(uint64_t id, uint32_t stream, const char *text)
{
    struct {
        struct silt_log_record record;
        char text[64];
    } r = {.record = {.len = (uint32_t)strlen(text), .stream = stream}};
    size_t len =
        (sizeof(r.record) + strlen(text) + SILT_LOG_ALIGN - 1) / SILT_LOG_ALIGN * SILT_LOG_ALIGN;
    struct silt_log_head head = {.magic = SILT_LOG_MAGIC, .ring_bytes = SILT_LOG_RING, .head = len};
    struct silt_agent_logged logged = {.head = len};
    (void)snprintf(r.text, sizeof(r.text), "%s", text);
    assert_int_equal(pwrite(log_file, &r, len, SILT_LOG_HEAD_SIZE), (ssize_t)len);
    assert_int_equal(pwrite(log_file, &head, sizeof(head), 0), (ssize_t)sizeof(head));
    harness_say(&h, SILT_AGENT_LOGGED, 0, id, &logged, sizeof(logged));
}

/* As much output as that, as fast as siltd takes it. */
static void pour(uint64_t id, uint32_t stream, size_t bytes)
{
    static char text[32 << 10];
    size_t window = SILT_EXEC_WINDOW;
    int64_t until = silt_clock_ms() + PATIENCE_MS;
    memset(text, 'x', sizeof(text));
    while (bytes > 0) {
        struct harness_frame f;
        size_t n = bytes < sizeof(text) ? bytes : sizeof(text);
        assert_true(silt_clock_ms() < until);
        if (window >= n) {
            harness_say(&h, SILT_AGENT_OUT, stream, id, text, n);
            window -= n;
            bytes -= n;
        }
        serve_priv();
        assert_int_equal(silt_loop_turn(&h.loop, 1, &e), 0);
        uint32_t got = harness_told(&h, &f);
        uint64_t more;
        if (got == SILT_AGENT_DETACH)
            return;
        if (got == SILT_AGENT_CREDIT) {
            memcpy(&more, f.frame.body, sizeof(more));
            window += (size_t)more;
        }
    }
}

static void end(uint64_t id)
{
    struct silt_agent_end how = {0};
    harness_say(&h, SILT_AGENT_ENDED, 0, id, &how, sizeof(how));
}

static void destroy(void)
{
    struct silt_sandbox *s = silt_registry_find(&h.registry, SILT_LIT("box"));
    assert_non_null(s);
    silt_sandbox_destroy(s, NULL);
    serve_priv();
    assert_int_equal(h.registry.slots_used, 0);
}

static void output_is_answered_byte_for_byte(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    harness_say(&h, SILT_AGENT_OUT, 1, id, "a\0\xc3", 3);
    harness_say(&h, SILT_AGENT_OUT, 1, id, "\xa9\xff\n", 3);
    end(id);
    await("\"stdout\":\"a\xc3\xa9\xef\xbf\xbd\\n\",\"stderr\":\"\"");
    await("\"sessionId\":\"__DISABLE_SESSION__\"}");
}

static void large_output_comes_from_the_disk(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    pour(id, 1, 3 * MIB);
    pour(id, 2, 1000);
    end(id);
    await("\"sessionId\":\"__DISABLE_SESSION__\"}");
    size_t count = 0;
    for (size_t i = 0; i < answer.len; i++)
        count += answer.data[i] == 'x';
    assert_in_range(count, 3 * MIB + 1000, 3 * MIB + 1100);
}

static void a_sandbox_may_go_while_its_output_is_read(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    pour(id, 1, 3 * MIB);
    end(id);
    await("\"stdout\":\"");
    destroy();
    await("\"sessionId\":\"__DISABLE_SESSION__\"}");
}

static void a_reader_may_leave_after_its_sandbox_is_gone(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    pour(id, 1, 3 * MIB);
    end(id);
    await("\"stdout\":\"");
    destroy();
    leave();
}

static void a_reader_may_leave_while_its_output_is_stored(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    pour(id, 1, MIB + 70000);
    leave();
    end(id);
    destroy();
}

static void a_full_disk_answers_with_the_part_so_far(void **state)
{
    (void)state;
    full = true;
    uint64_t id = start_plain("/sandboxes/box/api/execute");
    pour(id, 1, 3 * MIB);
    await("\"httpStatus\":");
    await("}");
    size_t count = 0;
    for (size_t i = 0; i < answer.len; i++)
        count += answer.data[i] == 'x';
    assert_true(count > MIB);
    end(id);
}

static void a_stream_may_lose_its_reader_at_any_moment(void **state)
{
    (void)state;
    uint64_t id = start_plain("/sandboxes/box/api/execute/stream");
    await("event: start\n");
    log_output(id, SILT_LOG_STDERR, "x");
    await("event: stderr\ndata: {\"type\":\"stderr\",\"data\":\"x\"");
    leave();
    assert_int_equal(told(SILT_AGENT_DETACH), id);
    end(id);
    destroy();
}

static void a_stream_ends_with_its_sandbox(void **state)
{
    (void)state;
    (void)start_plain("/sandboxes/box/api/execute/stream");
    await("event: start\n");
    destroy();
    await("event: error\n");
    await("0\r\n\r\n");
}

static void who_waits_for_a_start_may_leave(void **state)
{
    struct silt_priv_request q;
    (void)state;
    ask("POST", "/sandboxes/box/api/execute", "{\"command\":\"x\"}");
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    leave();
    harness_answer(&h, &q, true);
    destroy();
}

static void who_makes_a_session_may_leave_before_it_is_open(void **state)
{
    int32_t pid = 5;
    (void)state;
    ask("POST", "/sandboxes/box/api/session/create", "{\"id\":\"s\"}");
    uint64_t id = told(SILT_AGENT_OPEN);
    leave();
    harness_say(&h, SILT_AGENT_OPENED, 0, id, &pid, sizeof(pid));
    ask("POST", "/sandboxes/box/api/session/delete", "{\"sessionId\":\"s\"}");
    assert_int_equal(told(SILT_AGENT_CLOSE), id);
    leave();
    harness_say(&h, SILT_AGENT_CLOSED, 0, id, NULL, 0);
    ask("GET", "/sandboxes/box/api/session/list", "");
    await("\"data\":[]");
    destroy();
}

static void a_create_that_is_destroyed_meanwhile_is_refused(void **state)
{
    struct silt_priv_request q;
    (void)state;
    ask("POST", "/v1/sandboxes", "{\"id\":\"box\",\"type\":\"lite\"}");
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    silt_sandbox_destroy(silt_registry_find(&h.registry, SILT_LIT("box")), NULL);
    await("HTTP/1.1 410");
    harness_answer(&h, &q, true);
    serve_priv();
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
}

static void an_import_may_lose_its_sender_at_any_moment(void **state)
{
    struct silt_priv_request q;
    (void)state;
    ask("PUT", "/v1/images/new", "not all");
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_IMPORT);
    leave();
    harness_answer(&h, &q, true);
    serve_priv();
    assert_int_equal(h.registry.stagings, 0);
    assert_null(silt_image_find(&h.registry, SILT_LIT("new"), NULL));
}

static void who_looks_may_leave_before_the_numbers_are_there(void **state)
{
    struct silt_priv_request q;
    (void)state;
    ask("GET", "/sandboxes/box/api/ping", "");
    serve_priv();
    await("healthy");
    leave();
    ask("GET", "/v1/sandboxes/box", "");
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STAT);
    leave();
    destroy();
    harness_answer(&h, &q, true);
}

static void too_large_an_environment_is_refused(void **state)
{
    static char body[400 << 10];
    (void)state;
    int n = snprintf(body, sizeof(body), "{\"id\":\"box\",\"env\":{");
    for (int i = 0; i < 20000; i++)
        n += snprintf(body + n, sizeof(body) - (size_t)n, "\"V%d\":\"\",", i);
    (void)snprintf(body + n, sizeof(body) - (size_t)n, "\"V\":\"\"}}");
    ask_at_length("POST", "/v1/sandboxes", body);
    await("VALIDATION_FAILED");
    assert_int_equal(h.registry.slots_used, 0);
}

/* As many nodes as the memory of a request holds, but for the last half of a MiB. */
static void a_body_leaves_room_for_its_handler(void **state)
{
    enum {
        BLOCK = 8192,
        NODES = (192 * MIB - MIB / 2) / BLOCK * (BLOCK / (int)sizeof(struct silt_json))
    };
    char *body = malloc(2 * NODES + 64);
    size_t n = (size_t)snprintf(body, 64, "{\"command\":\"x\",\"more\":[0");
    (void)state;
    for (int i = 1; i < NODES; i++) {
        body[n++] = ',';
        body[n++] = '0';
    }
    memcpy(body + n, "]}", 3);
    ask_at_length("POST", "/sandboxes/box/api/process/start", body);
    free(body);
    await("BODY_TOO_LARGE");
}

static void a_path_that_is_too_long_to_be_watched_is_refused(void **state)
{
    enum { LONG = 100 * MIB };
    char *body = malloc(LONG + 64);
    size_t n = (size_t)snprintf(body, 64, "{\"path\":\"\\u0061");
    (void)state;
    memset(body + n, '/', LONG);
    memcpy(body + n + LONG, "\"}", 3);
    ask_at_length("POST", "/sandboxes/box/api/watch", body);
    free(body);
    await("path: is longer than 4095 bytes");
}

static void start_process(const char *id, const char *session)
{
    char body[256];
    (void)snprintf(body, sizeof(body),
                   "{\"command\":\"x\",\"processId\":\"%s\",\"sessionId\":\"%s\"}", id, session);
    ask("POST", "/sandboxes/box/api/process/start", body);
}

static void a_log_is_read_to_its_end_when_its_record_goes(void **state)
{
    int32_t pid = 5;
    (void)state;
    start_process("p", "__DISABLE_SESSION__");
    uint64_t id = told(SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_STARTED, 0, id, &pid, sizeof(pid));
    await("\"processId\":\"p\"");
    end(id);
    leave();
    ask("GET", "/sandboxes/box/api/process/p/logs", "");
    harness_turn(&h); /* its log is being opened */
    struct silt_sandbox *s = silt_registry_find(&h.registry, SILT_LIT("box"));
    silt_process_remove(silt_process_find(s, SILT_LIT("p")));
    serve_priv();
    await("\"stderr\":\"");
    serve_priv();
    await("\"cursor\":0}");
    assert_null(silt_process_find(s, SILT_LIT("p")));
}

/* The first holds its session and waits for its log; when it is given up, the next one hears that
 * the shell is gone, and its record goes. */
static void all_are_killed_though_their_ends_take_others_away(void **state)
{
    struct silt_agent_end died = {.code = 3};
    int32_t pid = 4;
    (void)state;
    ask("POST", "/sandboxes/box/api/session/create", "{\"id\":\"s\"}");
    uint64_t shell = told(SILT_AGENT_OPEN);
    harness_say(&h, SILT_AGENT_OPENED, 0, shell, &pid, sizeof(pid));
    await("Session created");
    leave();
    int clients[3];
    for (int i = 0; i < 3; i++) {
        const char *const ids[] = {"a", "b", "c"};
        start_process(ids[i], "s");
        clients[i] = client;
        harness_turn(&h);
    }
    harness_say(&h, SILT_AGENT_DIED, 0, shell, &died, sizeof(died));
    ask("DELETE", "/sandboxes/box/api/process/kill-all", "");
    await("\"cleanedCount\":3");
    for (int i = 0; i < 3; i++)
        silt_close_fd(&clients[i]);
    serve_priv();
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(output_is_answered_byte_for_byte),
        T(large_output_comes_from_the_disk),
        T(a_sandbox_may_go_while_its_output_is_read),
        T(a_reader_may_leave_after_its_sandbox_is_gone),
        T(a_reader_may_leave_while_its_output_is_stored),
        T(a_full_disk_answers_with_the_part_so_far),
        T(a_stream_may_lose_its_reader_at_any_moment),
        T(a_stream_ends_with_its_sandbox),
        T(who_waits_for_a_start_may_leave),
        T(who_makes_a_session_may_leave_before_it_is_open),
        T(a_create_that_is_destroyed_meanwhile_is_refused),
        T(an_import_may_lose_its_sender_at_any_moment),
        T(who_looks_may_leave_before_the_numbers_are_there),
        T(too_large_an_environment_is_refused),
        T(a_body_leaves_room_for_its_handler),
        T(a_path_that_is_too_long_to_be_watched_is_refused),
        T(a_log_is_read_to_its_end_when_its_record_goes),
        T(all_are_killed_though_their_ends_take_others_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
