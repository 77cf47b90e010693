/* SPDX-License-Identifier: Apache-2.0 */
#include "super/watchdog.h"
#include "unit/base/unit.h"

struct rig {
    struct silt_watchdog w;
    struct silt_watchdog_look look;
    int told, aborts, left;
};

static const uint64_t ms = 1000 * 1000;

/* A siltd that has counted once. */
static void begin(struct rig *r)
{
    *r = (struct rig){.look = {.now_ms = 1000, .state = 'S'}};
    assert_int_equal(silt_watchdog_judge(&r->w, &r->look), SILT_WATCHDOG_FINE);
    r->look.now_ms += 500;
    r->look.count++;
    assert_int_equal(silt_watchdog_judge(&r->w, &r->look), SILT_WATCHDOG_FINE);
}

/* So long without a count: each look half a second after the last, `ran` and `waited` ms of each.
 */
static void stand(struct rig *r, int64_t time_ms, char state, uint64_t ran, uint64_t waited)
{
    for (; time_ms > 0; time_ms -= 500) {
        r->look.now_ms += 500;
        r->look.state = state;
        r->look.cpu_ns += ran * ms;
        r->look.delay_ns += waited * ms;
        switch (silt_watchdog_judge(&r->w, &r->look)) {
        case SILT_WATCHDOG_FINE:
            break;
        case SILT_WATCHDOG_TELL:
            r->told++;
            break;
        case SILT_WATCHDOG_ABORT:
            r->aborts++;
            break;
        case SILT_WATCHDOG_LEAVE:
            r->left++;
            break;
        }
    }
}

TEST(one_that_waits_in_the_kernel_is_told_of_once_and_then_ended_once)
{
    struct rig r;
    begin(&r);
    stand(&r, 1500, 'S', 0, 0);
    assert_int_equal(r.told, 0);
    stand(&r, 500, 'S', 0, 0);
    assert_int_equal(r.told, 1);
    stand(&r, 7500, 'D', 0, 0);
    assert_int_equal(r.aborts, 0);
    stand(&r, 20000, 'D', 0, 0);
    assert_int_equal(r.told, 1);
    assert_int_equal(r.aborts, 1);
}

TEST(one_that_turns_on_the_spot_stands)
{
    struct rig r;
    begin(&r);
    stand(&r, 10000, 'R', 500, 0);
    assert_int_equal(r.aborts, 1);
}

TEST(waiting_for_a_processor_is_no_standing)
{
    struct rig r;
    begin(&r);
    stand(&r, 60000, 'R', 0, 0); /* the kernel counts the wait when it is over */
    stand(&r, 60000, 'S', 0, 500);
    stand(&r, 60000, 'R', 10, 490);
    assert_int_equal(r.told, 0);
}

TEST(one_that_was_stopped_is_not_judged)
{
    struct rig r;
    begin(&r);
    stand(&r, 60000, 'T', 0, 0);
    stand(&r, 60000, 't', 0, 0);
    assert_int_equal(r.told, 0);
}

TEST(time_in_which_silt_super_itself_stood_does_not_count)
{
    struct rig r;
    begin(&r);
    r.look.now_ms += 60000;
    assert_int_equal(silt_watchdog_judge(&r.w, &r.look), SILT_WATCHDOG_FINE);
    assert_int_equal(r.w.stood_ms, 0);
}

TEST(a_count_in_between_starts_over)
{
    struct rig r;
    begin(&r);
    for (int i = 0; i < 10; i++) {
        stand(&r, 9500, 'S', 0, 0);
        r.look.count++;
        stand(&r, 500, 'S', 0, 0);
    }
    assert_int_equal(r.told, 10);
    assert_int_equal(r.aborts, 0);
}

TEST(before_its_first_count_it_takes_its_time)
{
    struct rig r = {.look = {.now_ms = 1000, .state = 'D', .count = 7}};
    r.w.last = r.look;
    stand(&r, 60000, 'D', 0, 0);
    assert_int_equal(r.told, 0);
}

TEST(the_fourth_in_five_minutes_is_left_alone)
{
    struct rig r;
    begin(&r);
    for (int life = 0; life < 4; life++) {
        r.w.judged = r.w.told = false; /* as silt_watchdog_follow */
        r.w.stood_ms = 0;
        stand(&r, 12000, 'S', 0, 0);
    }
    assert_int_equal(r.aborts, 3);
    assert_int_equal(r.left, 1);
    r.w.judged = false;
    r.look.now_ms += SILT_WATCHDOG_WINDOW_MS;
    stand(&r, 1000, 'S', 0, 0);
    assert_int_equal(r.aborts, 4);
}
