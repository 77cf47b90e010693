/* SPDX-License-Identifier: Apache-2.0 */
/* What a new siltd makes of the contexts of a former one, and a context that cannot be stored. The
 * test plays silt-init. */
#include "sandbox/context/context.h"
#include "sandbox/core/facet.h"
#include "harness.h"
#include "store/db.h"
#include "unit/base/unit.h"

#include <signal.h>

enum { NUMBER = 7 };

static struct harness h;
static struct silt_sandbox *box;

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    (void)e;
    box = s;
}

static void set_up(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as siltd does */
    struct silt_priv_request q;
    static struct silt_waiter w;
    assert_int_equal(harness_open(&h), 0);
    w = (struct silt_waiter){.on_ready = on_ready};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    harness_turn(&h);
    assert_non_null(box);
}

static void load(void)
{
    char cwd[] = "/";
    struct silt_context_row row = {
        .slot = box->row.slot, .number = NUMBER, .id = "one", .cwd = cwd};
    struct silt_error e;
    assert_int_equal(silt_store_put_context(h.registry.store, &row, &e), 0);
    assert_int_equal(silt_context_facet.load(&h.registry, &e), 0);
}

/* Its agent knows it, and has told all. */
static void settle(void)
{
    struct harness_frame f;
    uint32_t type;
    bool killed = false;
    assert_true(silt_context_facet.adopt_exec(box, NUMBER, NULL));
    silt_context_facet.settle(box);
    while ((type = harness_told(&h, &f)) != 0)
        killed = killed || (type == SILT_AGENT_KILL && f.frame.id == NUMBER);
    assert_true(killed);
    struct silt_agent_end end = {.code = 128 + SIGKILL, .signal = SIGKILL};
    harness_say(&h, SILT_AGENT_ENDED, 0, NUMBER, &end, sizeof(end));
    harness_turn(&h);
}

TEST(a_context_of_a_former_version_ends_and_says_why)
{
    set_up();
    load();
    silt_contexts_outlive(&h.registry, box->row.slot, NUMBER);
    settle();
    const struct silt_context *c = silt_context_find(box, SILT_LIT("one"));
    assert_non_null(c);
    assert_int_equal(c->state, SILT_CONTEXT_DEAD);
    assert_string_equal(c->death.cause, "upgraded");
    harness_close(&h);
}

TEST(a_context_whose_descriptors_nobody_kept_is_gone)
{
    set_up();
    load();
    settle();
    assert_null(silt_context_find(box, SILT_LIT("one")));
    harness_close(&h);
}

struct started {
    struct silt_context_wait wait;
    int called;
    struct silt_context *context;
    enum silt_code code;
};

static void on_started(struct silt_context_wait *w, struct silt_context *c,
                       const struct silt_error *e)
{
    struct started *s = silt_outer(w, struct started, wait);
    s->called++;
    s->context = c;
    s->code = e != NULL ? e->code : SILT_OK;
}

/* No row that needs a page of its own is taken any more, and nobody has noticed yet. */
static void fill_database(void)
{
    sqlite3 *db = h.registry.store->db;
    assert_int_equal(sqlite3_exec(db, "PRAGMA max_page_count=1", NULL, NULL, NULL), SQLITE_OK);
    while (sqlite3_exec(db, "INSERT INTO meta VALUES(random(), zeroblob(8192))", NULL, NULL, NULL)
           == SQLITE_OK)
        ;
    assert_int_equal(sqlite3_errcode(db), SQLITE_FULL);
    h.registry.store->room.written = 0;
}

TEST(a_context_that_cannot_be_stored_is_refused_and_its_process_ended)
{
    static char env[64 << 10] = "A=";
    struct started s = {.wait = {.on_done = on_started}};
    struct silt_context *c;
    struct silt_error e;
    struct harness_frame f;
    uint64_t number = 0;
    bool killed = false;
    set_up();
    memset(env + 2, 'x', sizeof(env) - 3);
    fill_database();
    struct silt_context_options o = {.language = SILT_JAVASCRIPT, .env = {env, sizeof(env)}};
    assert_int_equal(silt_context_new(box, &o, &s.wait, &c, &e), 0);
    for (uint32_t type; (type = harness_told(&h, &f)) != 0;) {
        number = type == SILT_AGENT_EXEC ? f.frame.id : number;
        killed = killed || (type == SILT_AGENT_KILL && f.frame.id == number);
        silt_close_fd(&f.fd);
    }
    assert_true(number != 0 && killed);
    struct silt_agent_end end = {.code = 128 + SIGKILL, .signal = SIGKILL};
    harness_say(&h, SILT_AGENT_ENDED, 0, number, &end, sizeof(end));
    harness_turn(&h);
    assert_int_equal(s.called, 1);
    assert_null(s.context);
    assert_int_equal(s.code, SILT_NO_SPACE);
    assert_int_equal(box->context_count, 0);
    harness_close(&h);
}
