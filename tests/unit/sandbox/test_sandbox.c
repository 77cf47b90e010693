/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

struct wait {
    struct silt_waiter waiter;
    int called;
    struct silt_sandbox *sandbox;
    enum silt_code code;
};

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct wait *t = silt_container_of(w, struct wait, waiter);
    t->called++;
    t->sandbox = s;
    t->code = e != NULL ? e->code : SILT_OK;
}

struct sink {
    struct silt_exec_sink sink;
    int started, ended, failed;
    size_t bytes;
    struct silt_agent_end end;
};

static void on_started(struct silt_exec_sink *s, int32_t pid)
{
    (void)pid;
    silt_container_of(s, struct sink, sink)->started++;
}

static void on_output(struct silt_exec_sink *s, int stream, silt_slice bytes)
{
    (void)stream;
    silt_container_of(s, struct sink, sink)->bytes += bytes.len;
}

static void on_ended(struct silt_exec_sink *s, const struct silt_agent_end *end)
{
    struct sink *t = silt_container_of(s, struct sink, sink);
    t->ended++;
    t->end = *end;
}

static void on_failed(struct silt_exec_sink *s, const struct silt_error *e)
{
    (void)e;
    silt_container_of(s, struct sink, sink)->failed++;
}

#define SINK {.sink = {on_started, on_output, on_ended, on_failed}}

static struct harness h;

static struct silt_sandbox *running(void)
{
    struct silt_priv_request q;
    static struct wait w;
    w = (struct wait){.waiter = {.on_ready = on_ready}};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    assert_int_equal(w.called, 1);
    assert_non_null(w.sandbox);
    return w.sandbox;
}

static struct silt_session *opened(struct silt_sandbox *s, uint64_t *ret_number)
{
    struct silt_error e;
    struct harness_frame f;
    struct silt_session *session;
    struct silt_session_options o = {0};
    int32_t pid = 7;
    assert_int_equal(silt_session_new(s, SILT_LIT("main"), &o, &session, &e), 0);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_OPEN);
    harness_say(&h, SILT_AGENT_OPENED, 0, f.frame.id, &pid, sizeof(pid));
    *ret_number = f.frame.id;
    return session;
}

static struct silt_exec *start(struct silt_sandbox *s, struct silt_session *session, enum silt_agent_mode mode,
                               struct sink *sink)
{
    struct silt_error e;
    struct silt_exec *x;
    struct silt_exec_request q = {.mode = mode, .command = SILT_LIT("echo hi")};
    assert_int_equal(silt_exec_start(s, session, &q, &sink->sink, &x, &e), 0);
    return x;
}

static int set_up(void **state)
{
    (void)state;
    return harness_open(&h);
}

static int tear_down(void **state)
{
    (void)state;
    harness_close(&h);
    return 0;
}

static void first_use_creates_and_later_uses_find_it(void **state)
{
    struct wait again = {.waiter = {.on_ready = on_ready}};
    (void)state;
    struct silt_sandbox *s = running();
    silt_registry_use(&h.registry, SILT_LIT("box"), &again.waiter);
    assert_int_equal(again.called, 1);
    assert_ptr_equal(again.sandbox, s);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("Box")));
}

static void a_create_that_fails_is_told_and_leaves_nothing(void **state)
{
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, false);
    assert_int_equal(w.called, 1);
    assert_int_equal(w.code, SILT_NO_SPACE);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    assert_int_equal(h.registry.slots_used, 0);
}

static void commands_of_one_session_run_one_after_the_other(void **state)
{
    struct sink a = SINK, b = SINK;
    struct harness_frame f, g;
    struct silt_agent_end end = {.code = 3};
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &a);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &b);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    assert_int_equal(harness_told(&h, &g), 0);
    harness_say(&h, SILT_AGENT_OUT, 1, f.frame.id, "hello", 5);
    harness_say(&h, SILT_AGENT_ENDED, 0, f.frame.id, &end, sizeof(end));
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.bytes, 5);
    assert_int_equal(a.end.code, 3);
    assert_int_equal(harness_told(&h, &g), SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_ENDED, 0, g.frame.id, &end, sizeof(end));
    assert_int_equal(b.ended, 1);
}

static void a_background_start_frees_the_session_once_it_started(void **state)
{
    struct sink a = SINK, b = SINK;
    struct harness_frame f, g;
    int32_t pid = 9;
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    struct silt_exec *x = start(s, session, SILT_EXEC_BACKGROUND, &a);
    struct silt_exec *y = start(s, session, SILT_EXEC_FOREGROUND, &b);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    assert_int_equal(harness_told(&h, &g), 0);
    harness_say(&h, SILT_AGENT_STARTED, 0, f.frame.id, &pid, sizeof(pid));
    assert_int_equal(a.started, 1);
    assert_int_equal(harness_told(&h, &g), SILT_AGENT_EXEC);
    silt_exec_leave(x);
    silt_exec_leave(y);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_DETACH);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_DETACH);
}

static void a_shell_that_died_idle_is_told_once_and_then_replaced(void **state)
{
    struct sink a = SINK, b = SINK;
    struct harness_frame f;
    struct silt_agent_end end = {.code = 5};
    struct silt_error e;
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    harness_say(&h, SILT_AGENT_DIED, 0, number, &end, sizeof(end));
    assert_int_equal(session->state, SILT_SESSION_DEAD);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &a);
    harness_turn(&h);
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.end.flags, SILT_END_SHELL);
    assert_int_equal(a.end.code, 5);
    assert_null(silt_session_find(s, SILT_LIT("main")));
    struct silt_session_options o = {0};
    assert_int_equal(silt_session_new(s, SILT_LIT("main"), &o, &session, &e), 0);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_OPEN);
    struct silt_exec *x = start(s, session, SILT_EXEC_FOREGROUND, &b);
    silt_exec_leave(x);
}

static void whoever_waits_behind_a_shell_that_exits_gets_a_new_one(void **state)
{
    struct sink a = SINK, b = SINK;
    struct harness_frame f, g;
    struct silt_agent_end end = {.code = 3, .flags = SILT_END_SHELL};
    int32_t pid = 1;
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &a);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &b);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_ENDED, 0, f.frame.id, &end, sizeof(end));
    harness_say(&h, SILT_AGENT_DIED, 0, number, &end, sizeof(end));
    assert_int_equal(a.ended, 1);
    assert_int_equal(harness_told(&h, &g), SILT_AGENT_OPEN);
    assert_true(g.frame.id != number);
    harness_say(&h, SILT_AGENT_OPENED, 0, g.frame.id, &pid, sizeof(pid));
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    end.flags = 0;
    harness_say(&h, SILT_AGENT_ENDED, 0, f.frame.id, &end, sizeof(end));
    assert_int_equal(b.ended, 1);
}

static void an_agent_that_sends_more_than_its_window_is_ended(void **state)
{
    static char junk[SILT_FRAME_BODY_MAX];
    struct sink a = SINK;
    struct harness_frame f;
    struct silt_priv_request q;
    (void)state;
    struct silt_sandbox *s = running();
    (void)start(s, NULL, SILT_EXEC_PLAIN, &a);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    for (size_t sent = 0; sent <= SILT_EXEC_WINDOW + 2 * SILT_FRAME_BODY_MAX; sent += sizeof(junk))
        harness_say(&h, SILT_AGENT_OUT, 1, f.frame.id, junk, sizeof(junk));
    assert_int_equal(a.failed, 1);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
    assert_string_equal(s->row.death.cause, "crash");
}

static void garbage_from_the_agent_ends_it_and_the_next_use_starts_again(void **state)
{
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    struct silt_sandbox *s = running();
    harness_say(&h, 4711, 0, 0, "x", 1);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    harness_answer(&h, &q, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    assert_int_equal(q.body.create.flags & SILT_CREATE_FRESH, 0);
    harness_answer(&h, &q, true);
    assert_int_equal(w.called, 1);
    assert_ptr_equal(w.sandbox, s);
}

static void who_uses_an_id_while_it_is_destroyed_gets_a_new_sandbox(void **state)
{
    struct silt_priv_request q;
    struct wait gone = {.waiter = {.on_ready = on_ready}}, again = {.waiter = {.on_ready = on_ready}};
    struct sink a = SINK;
    (void)state;
    struct silt_sandbox *s = running();
    (void)start(s, NULL, SILT_EXEC_PLAIN, &a);
    silt_sandbox_destroy(s, &gone.waiter);
    assert_int_equal(a.failed, 1);
    silt_registry_use(&h.registry, SILT_LIT("box"), &again.waiter);
    assert_int_equal(again.called, 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_int_equal(gone.called, 1);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    harness_answer(&h, &q, true);
    assert_int_equal(again.called, 1);
    assert_non_null(again.sandbox);
}

static void a_new_daemon_knows_the_sessions_of_a_running_sandbox_again(void **state)
{
    struct harness_frame f;
    struct sink a = SINK;
    struct {
        struct silt_agent_session_info info;
        uint32_t timeout_ms;
        char name[4];
    } session = {.info = {.pid = 3, .note_len = 8, .busy_exec = 77}, .timeout_ms = 5, .name = {'m', 'a', 'i', 'n'}};
    struct silt_agent_end end = {.code = 0};
    (void)state;
    struct silt_sandbox *s = running();
    /* The same channel as after a restart of siltd: HELLO again, then the agent tells what it has. */
    s->adopted = true;
    s->state = SILT_SANDBOX_STARTING;
    harness_say(&h, SILT_AGENT_SESSION_INFO, 0, 42, &session, sizeof(session.info) + 8);
    harness_say(&h, SILT_AGENT_READY, 0, 0, &h.registry.epoch, sizeof(uint64_t));
    struct silt_session *found = silt_session_find(s, SILT_LIT("main"));
    assert_non_null(found);
    assert_int_equal(found->timeout_ms, 5);
    struct silt_exec *x = start(s, found, SILT_EXEC_FOREGROUND, &a);
    assert_int_equal(harness_told(&h, &f), 0); /* a command of the former daemon still runs in it */
    harness_say(&h, SILT_AGENT_ENDED, 0, 77, &end, sizeof(end));
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    silt_exec_leave(x);
}

static void a_restarted_helper_fails_what_it_was_asked_and_gets_what_is_new(void **state)
{
    struct silt_priv_request q;
    struct wait gone = {.waiter = {.on_ready = on_ready}};
    struct silt_error e;
    int pair[2];
    (void)state;
    struct silt_sandbox *s = running();
    silt_sandbox_destroy(s, &gone.waiter);
    assert_true(harness_asked(&h, &q));
    silt_close_fd(&h.priv); /* kill -9 */
    harness_turn(&h);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    h.priv = pair[1];
    silt_priv_ask_replace(h.registry.priv, pair[0]);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY); /* asked again: it may not have happened */
    harness_answer(&h, &q, true);
    assert_int_equal(gone.called, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(first_use_creates_and_later_uses_find_it),
        T(a_create_that_fails_is_told_and_leaves_nothing),
        T(commands_of_one_session_run_one_after_the_other),
        T(a_background_start_frees_the_session_once_it_started),
        T(a_shell_that_died_idle_is_told_once_and_then_replaced),
        T(whoever_waits_behind_a_shell_that_exits_gets_a_new_one),
        T(an_agent_that_sends_more_than_its_window_is_ended),
        T(garbage_from_the_agent_ends_it_and_the_next_use_starts_again),
        T(who_uses_an_id_while_it_is_destroyed_gets_a_new_sandbox),
        T(a_new_daemon_knows_the_sessions_of_a_running_sandbox_again),
        T(a_restarted_helper_fails_what_it_was_asked_and_gets_what_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
