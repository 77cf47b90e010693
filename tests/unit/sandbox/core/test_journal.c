/* SPDX-License-Identifier: Apache-2.0 */
/* Events in order: from memory, from the store, after a restart, and when old ones have gone. */
#include "base/clock.h"
#include "harness.h"
#include "sandbox/core/disk_full.h"
#include "unit/base/unit.h"

#include <stdlib.h>

static struct harness h;

struct seen {
    uint64_t first, last;
    uint64_t count;
    bool torn; /* not in order */
    char text[512];
};

static void on_event(void *context, const struct silt_event_row *event)
{
    struct seen *s = context;
    silt_auto_buf b;
    silt_buf_init(&b, sizeof(s->text) - 1);
    silt_event_write(&b, event);
    (void)snprintf(s->text, sizeof(s->text), "%.*s", (int)b.len, b.data);
    s->torn = s->torn || event->number <= s->last;
    s->first = s->count == 0 ? event->number : s->first;
    s->last = event->number;
    s->count++;
}

static struct seen read_all(uint64_t after)
{
    struct seen s = {.last = after};
    struct silt_error e;
    while (silt_journal_read(&h.registry.journal, s.last, on_event, &s, &e) > 0)
        continue;
    return s;
}

static void add(const char *id, enum silt_event_type type, const char *details)
{
    silt_journal_add(&h.registry, id, type, silt_slice_of(details));
}

TEST(an_event_is_an_object_with_the_members_of_its_details)
{
    assert_int_equal(harness_open(&h), 0);
    add("one", SILT_EVENT_ROLLED_BACK, "{\"snapshot\":\"snap_1\",\"n\":2}");
    struct seen s = read_all(0);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.text, "\"type\":\"rolledBack\",\"sandbox\":\"one\",\"at\":\"20"));
    assert_non_null(strstr(s.text, "Z\",\"snapshot\":\"snap_1\",\"n\":2}"));
    add("", SILT_EVENT_DISK_FULL, "");
    s = read_all(s.last);
    assert_non_null(strstr(s.text, "\"type\":\"diskFull\",\"sandbox\":null,\"at\":\"20"));
    harness_close(&h);
}

TEST(details_that_are_too_long_are_left_out)
{
    static char details[SILT_EVENT_DETAILS_MAX + 64];
    assert_int_equal(harness_open(&h), 0);
    memset(details, ' ', sizeof(details) - 1);
    details[0] = '{';
    details[sizeof(details) - 2] = '}';
    add("one", SILT_EVENT_DIED, details);
    struct seen s = read_all(0);
    assert_int_equal(s.count, 1);
    assert_true(s.text[strlen(s.text) - 2] == '"');
    harness_close(&h);
}

TEST(more_events_than_fit_memory_are_read_from_the_store_in_order)
{
    assert_int_equal(harness_open(&h), 0);
    for (int i = 0; i < 3 * SILT_EVENTS_RECENT; i++)
        add("one", SILT_EVENT_STARTED, "");
    struct seen s = read_all(0);
    assert_int_equal(s.count, 3 * SILT_EVENTS_RECENT);
    assert_false(s.torn);
    assert_int_equal(s.last, silt_journal_last(&h.registry.journal));
    struct seen rest = read_all(s.last - 10);
    assert_int_equal(rest.count, 10);
    assert_false(silt_journal_has_lost(&h.registry.journal, s.first));
    harness_close(&h);
}

TEST(a_new_siltd_has_the_events_and_goes_on_behind_them)
{
    assert_int_equal(harness_open(&h), 0);
    add("one", SILT_EVENT_CREATED, "{\"a\":1}");
    struct seen before = read_all(0);
    assert_int_equal(harness_restart(&h), 0);
    struct seen after = read_all(0);
    assert_int_equal(after.count, 1);
    assert_string_equal(after.text, before.text);
    add("one", SILT_EVENT_DESTROYED, "");
    after = read_all(before.last);
    assert_int_equal(after.count, 1);
    assert_true(after.last > before.last);
    harness_close(&h);
}

static void write_pool(enum silt_pool_state state)
{
    struct silt_registry *r = &h.registry;
    struct silt_pool_status pool = {
        .magic = SILT_POOL_MAGIC, .state = state, .max = 7 << 20, .at_ms = silt_clock_ms()};
    (void)snprintf(r->pool.path, sizeof(r->pool.path), "%s/pool", h.directory);
    FILE *f = fopen(r->pool.path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(&pool, sizeof(pool), 1, f), 1);
    assert_int_equal(fclose(f), 0);
    silt_disk_full_look(r);
}

TEST(a_pool_that_becomes_full_is_an_event_of_its_own_and_one_a_minute)
{
    assert_int_equal(harness_open(&h), 0);
    write_pool(SILT_POOL_LOW);
    assert_int_equal(read_all(0).count, 0);
    write_pool(SILT_POOL_FULL);
    struct seen s = read_all(0);
    assert_int_equal(s.count, 1);
    assert_non_null(strstr(s.text, "\"type\":\"diskFull\",\"sandbox\":null"));
    assert_non_null(strstr(s.text, "\"scope\":\"pool\",\"limitBytes\":7340032}"));
    write_pool(SILT_POOL_FULL); /* it still is */
    silt_disk_full_note(&h.registry, NULL);
    write_pool(SILT_POOL_OK);
    write_pool(SILT_POOL_FULL); /* again, within the minute */
    assert_int_equal(read_all(0).count, 1);
    h.registry.pool_full_ms -= 60000;
    silt_disk_full_look(&h.registry);
    assert_int_equal(read_all(0).count, 2);
    (void)unlink(h.registry.pool.path);
    harness_close(&h);
}

TEST(old_events_go_and_a_reader_behind_them_can_tell)
{
    assert_int_equal(harness_open(&h), 0);
    add("one", SILT_EVENT_CREATED, "");
    uint64_t first = silt_journal_last(&h.registry.journal);
    for (int i = 0; i < SILT_EVENTS_KEPT + 2000; i++)
        add("one", SILT_EVENT_STARTED, "");
    struct seen s = read_all(0);
    assert_true(s.count >= SILT_EVENTS_KEPT && s.count < SILT_EVENTS_KEPT + 1100);
    assert_true(silt_journal_has_lost(&h.registry.journal, first));
    assert_false(silt_journal_has_lost(&h.registry.journal, s.first));
    assert_false(silt_journal_has_lost(&h.registry.journal, 0)); /* asks for what is kept */
    assert_true(silt_journal_has_lost(&h.registry.journal, s.last + 1));
    harness_close(&h);
}
