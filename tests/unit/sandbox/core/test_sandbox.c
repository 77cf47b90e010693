/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/preview/exposed_port.h"
#include "store/db.h"
#include "wire/super.h"
#include "sandbox/image/import.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct wait {
    struct silt_waiter waiter;
    int called;
    struct silt_sandbox *sandbox;
    enum silt_code code;
};

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct wait *t = silt_outer(w, struct wait, waiter);
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
    silt_outer(s, struct sink, sink)->started++;
}

static void on_output(struct silt_exec_sink *s, int stream, silt_slice bytes)
{
    (void)stream;
    silt_outer(s, struct sink, sink)->bytes += bytes.len;
}

static void on_ended(struct silt_exec_sink *s, const struct silt_agent_end *end)
{
    struct sink *t = silt_outer(s, struct sink, sink);
    t->ended++;
    t->end = *end;
}

static void on_failed(struct silt_exec_sink *s, const struct silt_error *e)
{
    (void)e;
    silt_outer(s, struct sink, sink)->failed++;
}

#define SINK                                                                                       \
    {                                                                                              \
        .sink = {                                                                                  \
            .started = on_started,                                                                 \
            .output = on_output,                                                                   \
            .ended = on_ended,                                                                     \
            .failed = on_failed                                                                    \
        }                                                                                          \
    }

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

static struct silt_exec *start(struct silt_sandbox *s, struct silt_session *session,
                               enum silt_agent_mode mode, struct sink *sink)
{
    struct silt_error e;
    struct silt_exec *x;
    struct silt_exec_request q = {.mode = mode, .command = SILT_LIT("echo hi")};
    assert_int_equal(silt_exec_start(s, session, &q, &sink->sink, &x, &e), 0);
    return x;
}

/* In a child, because it aborts. */
static bool may_credit(struct silt_exec *x, size_t n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        silt_exec_credit(x, n);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
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

static void no_more_output_is_credited_than_came(void **state)
{
    struct sink sink = SINK;
    struct harness_frame f;
    (void)state;
    struct silt_exec *x = start(running(), NULL, SILT_EXEC_PLAIN, &sink);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_OUT, 1, f.frame.id, "four", 4);
    assert_int_equal(sink.bytes, 4);
    silt_exec_credit(x, 3);
    assert_true(may_credit(x, 1));
    assert_false(may_credit(x, 2));
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
    struct wait gone = {.waiter = {.on_ready = on_ready}},
                again = {.waiter = {.on_ready = on_ready}};
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

static void run_sql(const char *sql)
{
    assert_int_equal(sqlite3_exec(h.registry.store->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* As on a full disk. */
static void refuse_deletes(bool refuse)
{
    static const char *const tables[] = {"sandbox", "policy", "process",
                                         "context", "port",   "alias"};
    char sql[256];
    for (size_t i = 0; i < SILT_COUNT(tables); i++) {
        (void)snprintf(sql, sizeof(sql),
                       refuse ? "CREATE TEMP TRIGGER keep_%s BEFORE DELETE ON %s"
                                " BEGIN SELECT RAISE(ABORT, 'full'); END"
                              : "DROP TRIGGER keep_%s",
                       tables[i], tables[i]);
        run_sql(sql);
    }
}

static void destroyed(struct silt_sandbox *s)
{
    struct silt_priv_request q;
    struct wait gone = {.waiter = {.on_ready = on_ready}};
    silt_sandbox_destroy(s, &gone.waiter);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_int_equal(gone.called, 1);
}

static void a_sandbox_inherits_nothing_of_the_slots_former_one(void **state)
{
    struct silt_error e;
    struct silt_exposed_port *port;
    uint64_t former;
    struct silt_exposed_port_options o = {.port = 8000};
    (void)state;
    struct silt_sandbox *s = running();
    uint32_t slot = s->row.slot;
    assert_int_equal(silt_exposed_port_expose(s, &o, &port, &former, &e), 0);
    s->row.network = SILT_NET_ALLOW;
    s->row.allow = strdup("example.com\n");
    assert_int_equal(silt_store_put_policy(h.registry.store, &s->row, &e), 0);
    refuse_deletes(true);
    destroyed(s);
    refuse_deletes(false);
    h.registry.next_slot = slot;
    s = running();
    assert_int_equal(s->row.slot, slot);
    assert_int_equal(harness_restart(&h), 0);
    s = silt_registry_find(&h.registry, SILT_LIT("box"));
    assert_non_null(s);
    assert_null(s->row.allow);
    assert_true(silt_list_empty(&s->entrances));
}

static void a_slot_whose_rows_cannot_be_removed_is_not_taken(void **state)
{
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    run_sql("INSERT INTO port VALUES(0, 8000, 1, NULL, 'token', 0, 0)");
    refuse_deletes(true);
    h.registry.next_slot = 0;
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    refuse_deletes(false);
    assert_int_equal(w.called, 1);
    assert_null(w.sandbox);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    assert_int_equal(running()->row.slot, 1);
}

static void a_new_daemon_knows_the_sessions_of_a_running_sandbox_again(void **state)
{
    struct harness_frame f;
    struct sink a = SINK;
    struct {
        struct silt_agent_session_info info;
        uint32_t timeout_ms;
        char name[4];
    } session = {.info = {.pid = 3, .note_len = 8, .busy_exec = 77},
                 .timeout_ms = 5,
                 .name = {'m', 'a', 'i', 'n'}};
    struct silt_agent_end end = {.code = 0};
    (void)state;
    struct silt_sandbox *s = running();
    /* The same channel as after a restart of siltd: HELLO again, then the agent tells what it has.
     */
    s->phase = SILT_SANDBOX_IS_ADOPTED;
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

static void a_destroyed_sandbox_stays_in_memory_until_its_last_request_is_over(void **state)
{
    struct silt_priv_request q;
    (void)state;
    struct silt_sandbox *s = running();
    silt_sandbox_hold(s); /* an answer that is still being read, say */
    silt_sandbox_destroy(s, NULL);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    assert_int_equal(s->phase, SILT_SANDBOX_IS_GONE);
    silt_sandbox_release(s);
    harness_turn(&h);
}

static void a_destroy_waits_for_a_create_and_ends_who_waits(void **state)
{
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}}, gone = {.waiter = {.on_ready = on_ready}};
    (void)state;
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    silt_sandbox_destroy(silt_registry_find(&h.registry, SILT_LIT("box")), &gone.waiter);
    assert_int_equal(w.called, 1);
    assert_int_equal(w.code, SILT_GONE);
    struct silt_priv_request create = q;
    assert_false(harness_asked(&h, &q));
    harness_answer(&h, &create, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_int_equal(gone.called, 1);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    assert_false(harness_asked(&h, &q));
    assert_int_equal(h.registry.cold_starts, 0);
    assert_int_equal(h.registry.slots_used, 0);
}

static void a_stop_waits_for_what_silt_priv_was_asked_before(void **state)
{
    struct silt_priv_request handles, q;
    (void)state;
    (void)running();
    harness_say(&h, SILT_AGENT_NEED_HANDLES, 0, 0, NULL, 0); /* none: not worth a question */
    assert_false(harness_asked(&h, &q));
    harness_say(&h, SILT_AGENT_NEED_HANDLES, 4, 0, NULL, 0);
    assert_true(harness_asked(&h, &handles));
    assert_int_equal(handles.op, SILT_PRIV_HANDLES);
    harness_say(&h, 4711, 0, 0, "x", 1);
    assert_false(harness_asked(&h, &q));
    harness_answer(&h, &handles, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
}

static void make_ready(struct silt_priv_request *q)
{
    h.registry.settings.ready = 1;
    silt_ready_pool_refill_soon(&h.registry);
    assert_true(harness_asked(&h, q));
    assert_int_equal(q->op, SILT_PRIV_CREATE);
    harness_answer(&h, q, true);
    harness_welcome(&h);
    assert_int_equal(h.registry.ready.count, 1);
    assert_int_equal(h.registry.ready.coming, 0);
    h.registry.settings.ready = 0;
}

static void handles_that_are_needed_during_a_claim_are_asked_for_after_it(void **state)
{
    (void)state;
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    make_ready(&q);
    silt_registry_use(&h.registry, SILT_LIT("a"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CLAIM);
    harness_say(&h, SILT_AGENT_NEED_HANDLES, 4, 0, NULL, 0);
    harness_turn(&h);
    harness_answer(&h, &q, true);
    harness_turn(&h);
    bool asked = false;
    while (harness_asked(&h, &q))
        asked = asked || (q.op == SILT_PRIV_HANDLES && q.body.count == 4);
    assert_true(asked);
}

static void a_ready_one_that_dies_while_it_is_claimed_is_started_under_its_name(void **state)
{
    struct silt_priv_request claim, q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    make_ready(&q);
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &claim));
    assert_int_equal(claim.op, SILT_PRIV_CLAIM);
    harness_say(&h, 4711, 0, 0, "x", 1);
    assert_false(harness_asked(&h, &q));
    harness_answer(&h, &claim, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
    harness_answer(&h, &q, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CREATE);
    harness_answer(&h, &q, true);
    assert_int_equal(w.called, 1);
    assert_non_null(w.sandbox);
    assert_int_equal(h.registry.ready.count, 0);
}

static void a_claim_that_was_cut_off_is_asked_again(void **state)
{
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    struct silt_error e;
    int pair[2];
    (void)state;
    make_ready(&q);
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    silt_close_fd(&h.priv);
    harness_turn(&h);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET | SOCK_NONBLOCK, pair, &e), 0);
    h.priv = pair[1];
    silt_priv_ask_replace(h.registry.priv, pair[0]);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CLAIM);
    harness_answer(&h, &q, true);
    assert_int_equal(w.called, 1);
    assert_non_null(w.sandbox);
}

static void a_nameless_one_that_could_not_be_destroyed_is_not_kept(void **state)
{
    struct silt_priv_request q;
    (void)state;
    h.registry.settings.ready = 1;
    silt_ready_pool_refill_soon(&h.registry);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, false);
    assert_int_equal(h.registry.ready.coming, 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, false);
    h.registry.settings.ready = 0;
    silt_loop_after(&h.loop, &h.registry.upkeep, 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    harness_answer(&h, &q, true);
    assert_int_equal(h.registry.slots_used, 0);
}

static void
a_shell_that_dies_before_its_command_has_ended_keeps_its_session_until_then(void **state)
{
    struct sink a = SINK;
    struct harness_frame f;
    struct silt_agent_end end = {.code = 9};
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &a);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_DIED, 0, number, &end, sizeof(end));
    assert_true(silt_session_is_live(session)); /* nobody may put another one in its place */
    harness_say(&h, SILT_AGENT_ENDED, 0, f.frame.id, &end, sizeof(end));
    assert_int_equal(a.ended, 1);
    assert_false(silt_session_is_live(session));
}

static void a_command_that_reaches_a_dead_shell_is_told_its_end_and_nobody_else_is(void **state)
{
    struct sink a = SINK;
    struct harness_frame f;
    struct silt_agent_end end = {.code = 5};
    struct silt_error gone = {.code = SILT_GONE, .text = "the session's shell ended"};
    uint64_t number;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    (void)start(s, session, SILT_EXEC_FOREGROUND, &a);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    harness_say(&h, SILT_AGENT_DIED, 0, number, &end, sizeof(end));
    harness_say(&h, SILT_AGENT_FAILED, 0, f.frame.id, &gone, sizeof(gone));
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.failed, 0);
    assert_int_equal(a.end.code, 5);
    assert_int_equal(a.end.flags, SILT_END_SHELL);
    assert_null(silt_session_find(s, SILT_LIT("main")));
}

static void an_agent_that_does_not_read_is_ended_but_not_from_inside_a_send(void **state)
{
    static char large[50 << 10];
    struct sink a = SINK;
    struct silt_priv_request q;
    struct silt_error e;
    struct silt_exec *x;
    struct silt_exec_request big = {.mode = SILT_EXEC_PLAIN, .command = {large, sizeof(large)}};
    int count = 0;
    (void)state;
    memset(large, 'x', sizeof(large));
    struct silt_sandbox *s = running();
    while (!s->channel.stuck && count < 1000) {
        assert_int_equal(silt_exec_start(s, NULL, &big, &a.sink, &x, &e), 0);
        count++;
    }
    assert_true(s->channel.stuck);
    assert_int_equal(a.failed, 0);
    assert_int_equal(s->state, SILT_SANDBOX_RUNNING);
    harness_turn(&h);
    assert_int_equal(a.failed, count);
    assert_int_equal(h.registry.unstarted_bytes, 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_STOP);
}

static void what_waits_for_its_turn_has_a_limit(void **state)
{
    struct sink a = SINK;
    struct silt_error e;
    struct silt_exec *x;
    struct silt_exec_request request = {.mode = SILT_EXEC_FOREGROUND,
                                        .command = SILT_LIT("sleep 1")};
    uint64_t number;
    int count = 0;
    (void)state;
    struct silt_sandbox *s = running();
    struct silt_session *session = opened(s, &number);
    while (count < 5000 && silt_exec_start(s, session, &request, &a.sink, &x, &e) == 0) {
        silt_exec_leave(x); /* its client leaves, it goes on waiting */
        count++;
    }
    assert_true(count > 100 && count < 5000);
    assert_int_equal(e.code, SILT_LIMIT);
    silt_sandbox_destroy(s, NULL);
    assert_int_equal(h.registry.unstarted_bytes, 0);
    assert_int_equal(s->exec_count, 0);
}

static void a_new_daemon_counts_the_ready_ones_it_finds(void **state)
{
    struct silt_priv_request q;
    (void)state;
    make_ready(&q);
    assert_int_equal(harness_told_super(&h), SILT_SUPER_KEEP);
    h.registry.settings.ready = 1;
    assert_int_equal(harness_restart(&h), 0);
    assert_false(harness_asked(&h, &q));
    harness_welcome(&h);
    assert_int_equal(h.registry.ready.count, 1);
    assert_int_equal(h.registry.ready.coming, 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_NETSTAT); /* for its link */
    assert_false(harness_asked(&h, &q));
}

static void a_new_daemon_finds_a_named_one_and_who_uses_it_waits_for_its_agent(void **state)
{
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    (void)running();
    assert_int_equal(harness_told_super(&h), SILT_SUPER_KEEP);
    assert_int_equal(harness_restart(&h), 0);
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    harness_turn(&h);
    assert_int_equal(w.called, 0);
    harness_welcome(&h);
    assert_int_equal(w.called, 1);
    assert_non_null(w.sandbox);
}

/* Its ports went first: one that stayed without them would be neither destroyed nor what it was. */
static void a_destroy_that_a_restart_cut_off_is_finished(void **state)
{
    struct silt_priv_request q;
    (void)state;
    struct silt_sandbox *s = running();
    uint32_t slot = s->row.slot;
    assert_int_equal(harness_told_super(&h), SILT_SUPER_KEEP);
    silt_sandbox_destroy(s, NULL);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    assert_int_equal(harness_restart(&h), 0);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    assert_int_equal(q.slot, slot);
    harness_answer(&h, &q, true);
    harness_turn(&h);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
}

static void count_step(void *context, const struct silt_step_row *row)
{
    (void)row;
    ++*(int *)context;
}

static void steps_of_builds_whose_image_is_gone_are_forgotten_with_a_restart(void **state)
{
    struct silt_step_row row = {.key = {1}, .digest = {99}, .used_ms = 1};
    struct silt_error e;
    int count = 0;
    (void)state;
    assert_int_equal(silt_store_put_step(h.registry.store, &row, &e), 0);
    assert_int_equal(harness_restart(&h), 0);
    assert_int_equal(silt_store_each_step(h.registry.store, count_step, &count, &e), 0);
    assert_int_equal(count, 0);
}

static void a_claim_that_a_restart_cut_off_leaves_a_ready_one(void **state)
{
    struct silt_priv_request q;
    struct wait w = {.waiter = {.on_ready = on_ready}};
    (void)state;
    make_ready(&q);
    assert_int_equal(harness_told_super(&h), SILT_SUPER_KEEP);
    silt_registry_use(&h.registry, SILT_LIT("box"), &w.waiter);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_CLAIM);
    struct silt_sandbox *s = silt_registry_find(&h.registry, SILT_LIT("box"));
    silt_map_remove(&h.registry.by_id, SILT_LIT("box")); /* kill -9: nothing is written any more */
    s->row.id[0] = 0;
    assert_int_equal(harness_restart(&h), 0);
    harness_welcome(&h);
    assert_null(silt_registry_find(&h.registry, SILT_LIT("box")));
    assert_int_equal(h.registry.ready.count, 1);
}

static void what_runs_unknown_to_the_store_is_destroyed_and_dropped(void **state)
{
    struct silt_priv_request q;
    struct silt_error e;
    int pair[2];
    (void)state;
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    h.agent = pair[1];
    silt_registry_adopt(&h.registry, 3, pair[0], dup(h.pidfd));
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DESTROY);
    assert_int_equal(q.slot, 3);
    assert_int_equal(harness_told_super(&h), SILT_SUPER_DROP);
    assert_int_equal(h.registry.ready.coming, 0);
    harness_answer(&h, &q, true);
    assert_int_equal(h.registry.slots_used, 0);
}

static void an_agent_cannot_invent_sessions(void **state)
{
    struct {
        struct silt_agent_session_info info;
        uint32_t timeout_ms;
        char name[4];
    } session = {.info = {.note_len = 8}, .name = {'m', 'a', 'i', 'n'}};
    (void)state;
    struct silt_sandbox *s = running();
    harness_say(&h, SILT_AGENT_SESSION_INFO, 0, 42, &session, sizeof(session.info) + 8);
    assert_null(silt_session_find(s, SILT_LIT("main")));
}

struct importer {
    struct silt_import_sink sink;
    int done, failed;
};

static void on_import_done(struct silt_import_sink *s, const struct silt_image *image,
                           const char *name)
{
    (void)image;
    (void)name;
    silt_outer(s, struct importer, sink)->done++;
}

static void on_import_failed(struct silt_import_sink *s, const struct silt_error *e)
{
    (void)e;
    silt_outer(s, struct importer, sink)->failed++;
}

static void an_import_that_is_aborted_is_discarded_after_it_began(void **state)
{
    struct importer to = {.sink = {.done = on_import_done, .failed = on_import_failed}};
    struct silt_import *i;
    struct silt_priv_request import, q;
    struct silt_error e;
    (void)state;
    assert_int_equal(silt_import_start(&h.registry, &(struct silt_import_options){.name = "new"},
                                       &to.sink, &i, &e),
                     0);
    assert_true(harness_asked(&h, &import));
    assert_int_equal(import.op, SILT_PRIV_IMPORT);
    silt_import_abort(i);
    assert_false(harness_asked(&h, &q));
    harness_answer(&h, &import, false);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DISCARD);
    harness_answer(&h, &q, true);
    assert_int_equal(to.done + to.failed, 0);
    assert_int_equal(h.registry.stagings, 0);
}

/* The next question that is no recovery record, with its descriptors; it is answered. */
static void take_import(struct silt_parcel *p)
{
    struct silt_priv_request *q = p->data;
    struct silt_error e;
    do {
        silt_parcel_close(p);
        harness_turn(&h);
        assert_int_equal(silt_fd_recv(h.priv, p, &e), 1);
        harness_answer(&h, q, true);
    } while (q->op == SILT_PRIV_RECORD);
}

static void an_import_that_is_being_published_is_published_without_its_sender(void **state)
{
    struct importer to = {.sink = {.done = on_import_done, .failed = on_import_failed}};
    struct silt_import *i;
    struct silt_priv_request q;
    struct silt_error e;
    struct silt_fetch_result result = {.ok = 1, .bytes = 3};
    int fds[SILT_FDS_MAX];
    (void)state;
    memset(result.digest, 9, sizeof(result.digest));
    assert_int_equal(silt_import_start(&h.registry, &(struct silt_import_options){.name = "new"},
                                       &to.sink, &i, &e),
                     0);
    struct silt_parcel p = {.data = &q, .len = sizeof(q)};
    take_import(&p);
    memcpy(fds, p.fds, sizeof(fds));
    silt_import_end(i);
    assert_int_equal(write(fds[1], &result, sizeof(result)), sizeof(result));
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_COMMIT);
    silt_import_abort(i);
    struct silt_priv_request discard;
    assert_false(harness_asked(&h, &discard));
    harness_answer(&h, &q, true);
    assert_non_null(silt_image_find(&h.registry, SILT_LIT("new"), NULL));
    assert_true(harness_asked(&h, &discard));
    assert_int_equal(discard.op, SILT_PRIV_DISCARD);
    harness_answer(&h, &discard, true);
    assert_int_equal(to.done + to.failed, 0);
    silt_close_fd(&fds[0]);
    silt_close_fd(&fds[1]);
}

/* An import that is unpacked and wants to be published as that digest. */
static struct silt_import *unpacked(struct importer *to, const uint8_t *digest)
{
    struct silt_import *i;
    struct silt_priv_request q;
    struct silt_error e;
    struct silt_fetch_result result = {.ok = 1, .bytes = 3};
    struct silt_parcel p = {.data = &q, .len = sizeof(q)};
    memcpy(result.digest, digest, sizeof(result.digest));
    assert_int_equal(silt_import_start(&h.registry, &(struct silt_import_options){.name = "again"},
                                       &to->sink, &i, &e),
                     0);
    take_import(&p);
    silt_import_end(i);
    assert_int_equal(write(p.fds[1], &result, sizeof(result)), sizeof(result));
    silt_parcel_close(&p);
    harness_turn(&h);
    return i;
}

static void remove_image(const char *name)
{
    struct silt_error e;
    bool existed;
    assert_int_equal(silt_image_untag(&h.registry, name, &existed, &e), 0);
    assert_true(existed);
}

static void files_that_are_being_forgotten_are_published_again_when_they_are_gone(void **state)
{
    struct importer to = {.sink = {.done = on_import_done, .failed = on_import_failed}};
    uint8_t digest[SILT_DIGEST_SIZE];
    struct silt_priv_request forget, q;
    (void)state;
    memcpy(digest, harness_image(&h, "old", 8)->row.digest, sizeof(digest));
    remove_image("old");
    assert_true(harness_asked(&h, &forget));
    assert_int_equal(forget.op, SILT_PRIV_FORGET);
    (void)unpacked(&to, digest);
    assert_false(harness_asked(&h, &q));
    harness_answer(&h, &forget, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_COMMIT);
    assert_memory_equal(q.body.import.digest, digest, SILT_DIGEST_SIZE);
    harness_answer(&h, &q, true);
    assert_int_equal(to.done, 1);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DISCARD);
    harness_answer(&h, &q, true);
    assert_false(harness_asked(&h, &q));
}

static void an_import_may_be_aborted_while_it_waits_for_its_files_to_go(void **state)
{
    struct importer to = {.sink = {.done = on_import_done, .failed = on_import_failed}};
    uint8_t digest[SILT_DIGEST_SIZE];
    struct silt_priv_request forget, q;
    (void)state;
    memcpy(digest, harness_image(&h, "old", 8)->row.digest, sizeof(digest));
    remove_image("old");
    assert_true(harness_asked(&h, &forget));
    silt_import_abort(unpacked(&to, digest));
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_DISCARD);
    harness_answer(&h, &q, true);
    harness_answer(&h, &forget, true);
    assert_false(harness_asked(&h, &q));
    assert_int_equal(h.registry.stagings, 0);
}

static void files_that_are_being_published_are_not_forgotten(void **state)
{
    for (int ok = 0; ok < 2; ok++) {
        struct importer to = {.sink = {.done = on_import_done, .failed = on_import_failed}};
        uint8_t digest[SILT_DIGEST_SIZE];
        struct silt_priv_request commit, q;
        (void)state;
        memcpy(digest, harness_image(&h, "old", 8)->row.digest, sizeof(digest));
        (void)unpacked(&to, digest);
        assert_true(harness_asked(&h, &commit));
        assert_int_equal(commit.op, SILT_PRIV_COMMIT);
        remove_image("old");
        assert_false(harness_asked(&h, &q));
        harness_answer(&h, &commit, ok);
        assert_int_equal(ok ? to.done : to.failed, 1);
        assert_true(harness_asked(&h, &q));
        assert_int_equal(q.op, SILT_PRIV_DISCARD);
        harness_answer(&h, &q, true);
        if (ok)
            continue;
        assert_true(harness_asked(&h, &q)); /* then nobody wants them any more */
        assert_int_equal(q.op, SILT_PRIV_FORGET);
        harness_answer(&h, &q, true);
    }
}

static void files_of_a_replaced_image_go_with_its_last_sandbox(void **state)
{
    struct silt_priv_request q;
    (void)state;
    struct silt_sandbox *s = running();
    uint8_t old[SILT_DIGEST_SIZE];
    memcpy(old, s->row.digest, sizeof(old));
    (void)harness_image(&h, "base", 8);
    assert_false(harness_asked(&h, &q));
    silt_sandbox_destroy(s, NULL);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_FORGET);
    assert_memory_equal(q.body.import.digest, old, sizeof(old));
}

static void a_variable_is_replaced_by_one_of_the_same_name(void **state)
{
    silt_auto_buf b;
    (void)state;
    silt_buf_init(&b, 1 << 20);
    silt_env_merge(&b, SILT_LIT("A=1\0AB=2\0C=\0"));
    silt_env_merge(&b, SILT_LIT("D=4\0A=x=y\0"));
    silt_env_merge(&b, SILT_LIT(""));
    silt_slice want = SILT_LIT("AB=2\0C=\0D=4\0A=x=y\0");
    assert_int_equal(b.len, want.len);
    assert_memory_equal(b.data, want.data, want.len);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(first_use_creates_and_later_uses_find_it),
        T(no_more_output_is_credited_than_came),
        T(a_create_that_fails_is_told_and_leaves_nothing),
        T(commands_of_one_session_run_one_after_the_other),
        T(a_background_start_frees_the_session_once_it_started),
        T(a_shell_that_died_idle_is_told_once_and_then_replaced),
        T(whoever_waits_behind_a_shell_that_exits_gets_a_new_one),
        T(an_agent_that_sends_more_than_its_window_is_ended),
        T(garbage_from_the_agent_ends_it_and_the_next_use_starts_again),
        T(who_uses_an_id_while_it_is_destroyed_gets_a_new_sandbox),
        T(a_sandbox_inherits_nothing_of_the_slots_former_one),
        T(a_slot_whose_rows_cannot_be_removed_is_not_taken),
        T(a_new_daemon_knows_the_sessions_of_a_running_sandbox_again),
        T(a_restarted_helper_fails_what_it_was_asked_and_gets_what_is_new),
        T(a_destroyed_sandbox_stays_in_memory_until_its_last_request_is_over),
        T(a_destroy_waits_for_a_create_and_ends_who_waits),
        T(a_stop_waits_for_what_silt_priv_was_asked_before),
        T(handles_that_are_needed_during_a_claim_are_asked_for_after_it),
        T(a_ready_one_that_dies_while_it_is_claimed_is_started_under_its_name),
        T(a_claim_that_was_cut_off_is_asked_again),
        T(a_nameless_one_that_could_not_be_destroyed_is_not_kept),
        T(a_shell_that_dies_before_its_command_has_ended_keeps_its_session_until_then),
        T(a_command_that_reaches_a_dead_shell_is_told_its_end_and_nobody_else_is),
        T(an_agent_that_does_not_read_is_ended_but_not_from_inside_a_send),
        T(what_waits_for_its_turn_has_a_limit),
        T(a_new_daemon_counts_the_ready_ones_it_finds),
        T(a_new_daemon_finds_a_named_one_and_who_uses_it_waits_for_its_agent),
        T(a_destroy_that_a_restart_cut_off_is_finished),
        T(steps_of_builds_whose_image_is_gone_are_forgotten_with_a_restart),
        T(a_claim_that_a_restart_cut_off_leaves_a_ready_one),
        T(what_runs_unknown_to_the_store_is_destroyed_and_dropped),
        T(an_agent_cannot_invent_sessions),
        T(an_import_that_is_aborted_is_discarded_after_it_began),
        T(an_import_that_is_being_published_is_published_without_its_sender),
        T(files_that_are_being_forgotten_are_published_again_when_they_are_gone),
        T(an_import_may_be_aborted_while_it_waits_for_its_files_to_go),
        T(files_that_are_being_published_are_not_forgotten),
        T(files_of_a_replaced_image_go_with_its_last_sandbox),
        T(a_variable_is_replaced_by_one_of_the_same_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
