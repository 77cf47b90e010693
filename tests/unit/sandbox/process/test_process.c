/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "sandbox/process/log_follower.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct harness h;
static struct silt_sandbox *box;

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    assert_null(e);
    box = s;
}

static int set_up(void **state)
{
    struct silt_priv_request q;
    static struct silt_waiter w;
    (void)state;
    if (harness_open(&h) < 0)
        return -1;
    w = (struct silt_waiter){.on_ready = on_ready};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    if (!harness_asked(&h, &q))
        return -1;
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    return box == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    harness_close(&h);
    box = NULL;
    return 0;
}

struct watch {
    struct silt_process_watch watch;
    int told;
    enum silt_process_event what;
    enum silt_code code;
};

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct watch *t = silt_outer(w, struct watch, watch);
    (void)p;
    t->told++;
    t->what = what;
    t->code = e != NULL ? e->code : SILT_OK;
}

#define WATCH                                                                                      \
    {                                                                                              \
        .watch = {.on_event = on_event }                                                           \
    }

static struct silt_process *begin(const char *id, struct watch *w)
{
    struct silt_error e;
    struct silt_process *p = NULL;
    struct silt_process_request q = {.exec = {.mode = SILT_EXEC_PLAIN, .command = SILT_LIT("true")},
                                     .id = silt_slice_of(id)};
    assert_int_equal(silt_process_start(box, NULL, &q, &w->watch, &p, &e), 0);
    return p;
}

static void answer_log(bool ok)
{
    struct silt_priv_request q;
    do {
        assert_true(harness_asked(&h, &q));
        harness_answer(&h, &q, q.op == SILT_PRIV_LOG ? ok : true);
    } while (q.op == SILT_PRIV_UNLOG); /* of one that had the same id */
    assert_int_equal(q.op, SILT_PRIV_LOG);
}

/* One that runs. */
static struct silt_process *running(const char *id)
{
    static struct watch w;
    struct harness_frame f;
    int32_t pid = 42;
    w = (struct watch)WATCH;
    struct silt_process *p = begin(id, &w);
    answer_log(true);
    assert_int_equal(harness_told(&h, &f), SILT_AGENT_EXEC);
    assert_int_equal(f.frame.id, p->row.number);
    harness_say(&h, SILT_AGENT_STARTED, 0, p->row.number, &pid, sizeof(pid));
    assert_int_equal(w.told, 1);
    assert_int_equal(w.what, SILT_PROCESS_STARTED);
    assert_int_equal(p->row.pid, 42);
    return p;
}

static void end_with(struct silt_process *p, struct silt_agent_end how)
{
    harness_say(&h, SILT_AGENT_ENDED, 0, p->row.number, &how, sizeof(how));
}

static void the_status_follows_from_the_end(void **state)
{
    static const struct {
        struct silt_agent_end end;
        enum silt_process_status status;
        int exit_code;
    } cases[] = {
        {{.code = 0}, SILT_PROCESS_COMPLETED, 0},
        {{.code = 3}, SILT_PROCESS_FAILED, 3},
        {{.code = 137, .signal = 9}, SILT_PROCESS_KILLED, 137},
        {{.code = 143, .signal = 15}, SILT_PROCESS_KILLED, 143},
        {{.code = 137, .flags = SILT_END_TIMEOUT}, SILT_PROCESS_KILLED, 124},
        {{.code = -1}, SILT_PROCESS_ERROR, -1},
        {{.code = 4711}, SILT_PROCESS_ERROR, -1},
    };
    (void)state;
    for (size_t i = 0; i < SILT_COUNT(cases); i++) {
        struct silt_process *p = running("p");
        end_with(p, cases[i].end);
        p = silt_process_find(box, SILT_LIT("p"));
        assert_int_equal(p->row.status, cases[i].status);
        assert_int_equal(p->row.exit_code, cases[i].exit_code);
        struct silt_priv_request q; /* the one before it is gone, with its log */
        while (harness_asked(&h, &q))
            harness_answer(&h, &q, true);
        assert_int_equal(box->process_count, 1);
    }
}

static void without_a_log_it_cannot_start(void **state)
{
    struct watch w = WATCH;
    (void)state;
    (void)begin("p", &w);
    answer_log(false);
    assert_int_equal(w.told, 1);
    assert_int_equal(w.what, SILT_PROCESS_NOT_STARTED);
    assert_int_equal(w.code, SILT_NO_SPACE);
    assert_int_equal(silt_process_find(box, SILT_LIT("p"))->row.status, SILT_PROCESS_ERROR);
}

static void an_id_is_taken_as_long_as_its_process_runs(void **state)
{
    struct silt_error e;
    struct watch w = WATCH;
    struct silt_process *p;
    struct silt_process_request q = {.exec = {.mode = SILT_EXEC_PLAIN, .command = SILT_LIT("true")},
                                     .id = SILT_LIT("p")};
    (void)state;
    (void)running("p");
    assert_int_equal(silt_process_start(box, NULL, &q, &w.watch, &p, &e), -1);
    assert_int_equal(e.code, SILT_CONFLICT);
}

static void when_all_run_one_more_is_too_many(void **state)
{
    static struct watch watches[SILT_LOGS_MAX];
    struct silt_error e;
    struct silt_process *p, *first = NULL;
    struct silt_priv_request asked;
    struct silt_process_request q = {
        .exec = {.mode = SILT_EXEC_PLAIN, .command = SILT_LIT("true")}};
    (void)state;
    for (size_t i = 0; i < SILT_LOGS_MAX; i++) {
        watches[i] = (struct watch)WATCH;
        assert_int_equal(silt_process_start(box, NULL, &q, &watches[i].watch, &p, &e), 0);
        first = first != NULL ? first : p;
    }
    struct watch w = WATCH;
    assert_int_equal(silt_process_start(box, NULL, &q, &w.watch, &p, &e), -1);
    assert_int_equal(e.code, SILT_LIMIT);
    silt_process_kill(first, SIGTERM, 0); /* it has not begun: it is over at once */
    assert_int_equal(watches[0].what, SILT_PROCESS_NOT_STARTED);
    while (harness_asked(&h, &asked))
        harness_answer(&h, &asked, true);
    assert_int_equal(silt_process_start(box, NULL, &q, &w.watch, &p, &e), 0);
    assert_int_equal(box->process_count, SILT_LOGS_MAX);
    while (harness_asked(&h, &asked))
        harness_answer(&h, &asked, true);
    silt_process_unwatch(&w.watch);
    for (size_t i = 0; i < SILT_LOGS_MAX; i++)
        silt_process_unwatch(&watches[i].watch);
}

/* A new siltd: its agent tells of `told` (0: of none). */
static void restart(uint64_t told)
{
    struct harness_frame f;
    struct silt_agent_exec_info info = {.mode = SILT_EXEC_PLAIN, .pid = 42};
    struct silt_priv_request q;
    while (harness_told_super(&h) != 0)
        continue;
    assert_int_equal(harness_restart(&h), 0);
    box = silt_registry_find(&h.registry, SILT_LIT("box"));
    assert_non_null(box);
    do
        assert_int_not_equal(harness_told(&h, &f), 0);
    while (f.frame.type != SILT_AGENT_HELLO);
    harness_say(&h, SILT_AGENT_WELCOME, 0, 0, f.frame.body, sizeof(uint64_t));
    if (told != 0)
        harness_say(&h, SILT_AGENT_EXEC_INFO, 0, told, &info, sizeof(info));
    harness_say(&h, SILT_AGENT_READY, 0, 0, f.frame.body, sizeof(uint64_t));
    while (harness_asked(&h, &q))
        harness_answer(&h, &q, true);
}

static void one_that_runs_on_is_known_again_after_a_restart(void **state)
{
    (void)state;
    uint64_t number = running("p")->row.number;
    restart(number);
    struct silt_process *p = silt_process_find(box, SILT_LIT("p"));
    assert_int_equal(p->row.status, SILT_PROCESS_RUNNING);
    assert_non_null(p->exec);
    end_with(p, (struct silt_agent_end){.code = 6});
    assert_int_equal(p->row.exit_code, 6);
}

static void wait_until_over(struct silt_process *p)
{
    struct silt_error e;
    for (int i = 0; i < 500 && !silt_process_is_over(p); i++)
        assert_int_equal(silt_loop_turn(&h.loop, 10, &e), 0);
    assert_true(silt_process_is_over(p));
}

static void an_end_that_nobody_told_is_found_in_the_log(void **state)
{
    struct silt_log_head head = {
        .magic = SILT_LOG_MAGIC, .ring_bytes = SILT_LOG_RING, .ended = 1, .end = {.code = 9}};
    (void)state;
    (void)running("p");
    assert_int_equal(pwrite(h.log, &head, sizeof(head), 0), (ssize_t)sizeof(head));
    restart(0);
    struct silt_process *p = silt_process_find(box, SILT_LIT("p"));
    wait_until_over(p);
    assert_int_equal(p->row.exit_code, 9);
    assert_int_equal(p->row.status, SILT_PROCESS_FAILED);
}

static void one_that_vanished_without_a_trace_is_an_error(void **state)
{
    (void)state;
    (void)running("p");
    restart(0);
    struct silt_process *p = silt_process_find(box, SILT_LIT("p"));
    wait_until_over(p);
    assert_int_equal(p->row.status, SILT_PROCESS_ERROR);
    assert_int_equal(p->row.exit_code, -1);
    assert_string_equal(p->row.cause, "daemon_restart");
}

static void a_stop_ends_them_with_its_cause(void **state)
{
    (void)state;
    struct silt_process *p = running("p");
    silt_sandbox_stop(box, "idle", "it slept");
    assert_int_equal(p->row.status, SILT_PROCESS_ERROR);
    assert_string_equal(p->row.cause, "idle");
    struct silt_priv_request q;
    while (harness_asked(&h, &q))
        harness_answer(&h, &q, true);
}

static void ids_are_checked(void **state)
{
    (void)state;
    assert_true(silt_process_id_is_good(SILT_LIT("A.b_c:d@e-9")));
    assert_false(silt_process_id_is_good(SILT_LIT("")));
    assert_false(silt_process_id_is_good(SILT_LIT("list")));
    assert_false(silt_process_id_is_good(SILT_LIT("a\0b")));
    assert_false(silt_process_id_is_good(SILT_LIT("a/b")));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_status_follows_from_the_end),
        T(without_a_log_it_cannot_start),
        T(an_id_is_taken_as_long_as_its_process_runs),
        T(when_all_run_one_more_is_too_many),
        T(one_that_runs_on_is_known_again_after_a_restart),
        T(an_end_that_nobody_told_is_found_in_the_log),
        T(one_that_vanished_without_a_trace_is_an_error),
        T(a_stop_ends_them_with_its_cause),
        T(ids_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
