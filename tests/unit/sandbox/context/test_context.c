/* SPDX-License-Identifier: Apache-2.0 */
/* What a new siltd makes of the contexts of a former one. The test plays silt-init. */
#include "sandbox/context/context.h"
#include "sandbox/core/facet.h"
#include "harness.h"
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
