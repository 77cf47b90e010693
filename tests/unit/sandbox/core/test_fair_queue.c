/* SPDX-License-Identifier: Apache-2.0 */
/* Turns for what is large. */
#include "sandbox/core/fair_queue.h"
#include "unit/base/unit.h"

static struct silt_fair_queue all;
static struct silt_fair_queue_user users[3];
static struct silt_fair_queue_turn lanes[8];
static char turns[16];

static void on_turn(struct silt_fair_queue_turn *l)
{
    size_t n = strlen(turns);
    assert_int_equal(l->state, SILT_FAIR_QUEUE_TURN_IN);
    turns[n] = (char)('0' + (l - lanes));
    turns[n + 1] = 0;
}

/* Lanes of the users 0, 0, 0, 1, 1, 1, 2, 2. */
static void begin(unsigned max, unsigned each)
{
    silt_fair_queue_init(&all, max, each);
    turns[0] = 0;
    for (size_t i = 0; i < SILT_COUNT(lanes); i++)
        lanes[i] =
            (struct silt_fair_queue_turn){.all = &all, .user = &users[i / 3], .on_turn = on_turn};
    for (size_t i = 0; i < SILT_COUNT(users); i++)
        users[i].taken = 0;
}

TEST(one_user_waits_for_his_own_and_for_nobody_elses)
{
    begin(8, 2);
    assert_true(silt_fair_queue_turn_enter(&lanes[0]));
    assert_true(silt_fair_queue_turn_enter(&lanes[0])); /* it is in already */
    assert_true(silt_fair_queue_turn_enter(&lanes[1]));
    assert_false(silt_fair_queue_turn_enter(&lanes[2]));
    assert_true(silt_fair_queue_turn_enter(&lanes[3]));
    silt_fair_queue_turn_leave(&lanes[3]);
    assert_string_equal(turns, "");
    silt_fair_queue_turn_leave(&lanes[1]);
    assert_string_equal(turns, "2");
    assert_int_equal(all.taken, 2);
}

TEST(all_together_have_a_bound_and_come_in_the_order_of_asking)
{
    begin(3, 2);
    assert_true(silt_fair_queue_turn_enter(&lanes[0]));
    assert_true(silt_fair_queue_turn_enter(&lanes[1]));
    assert_true(silt_fair_queue_turn_enter(&lanes[3]));
    assert_false(silt_fair_queue_turn_enter(&lanes[2])); /* has two already: others pass */
    assert_false(silt_fair_queue_turn_enter(&lanes[6]));
    assert_false(silt_fair_queue_turn_enter(&lanes[4]));
    silt_fair_queue_turn_leave(&lanes[3]);
    assert_string_equal(turns, "6");
    silt_fair_queue_turn_leave(&lanes[0]);
    assert_string_equal(turns, "62");
    assert_int_equal(all.taken, 3);
    silt_fair_queue_turn_leave(&lanes[6]);
    assert_string_equal(turns, "624");
}

TEST(who_leaves_while_waiting_gets_no_turn)
{
    begin(1, 1);
    assert_true(silt_fair_queue_turn_enter(&lanes[0]));
    assert_false(silt_fair_queue_turn_enter(&lanes[3]));
    silt_fair_queue_turn_leave(&lanes[3]);
    silt_fair_queue_turn_leave(&lanes[3]);
    silt_fair_queue_turn_leave(&lanes[0]);
    assert_string_equal(turns, "");
    assert_int_equal(all.taken, 0);
    assert_true(silt_list_empty(&all.waiting));
}

TEST(a_place_that_was_passed_on_counts_until_it_is_left)
{
    struct silt_fair_queue_turn to;
    begin(2, 1);
    assert_true(silt_fair_queue_turn_enter(&lanes[0]));
    assert_false(silt_fair_queue_turn_enter(&lanes[1])); /* of the same user */
    silt_fair_queue_turn_pass(&lanes[0], &to);
    assert_int_equal(lanes[0].state, SILT_FAIR_QUEUE_TURN_OUT);
    silt_fair_queue_turn_leave(&lanes[0]);
    assert_string_equal(turns, "");
    assert_int_equal(all.taken, 1);
    silt_fair_queue_turn_leave(&to);
    assert_string_equal(turns, "1");
    assert_int_equal(all.taken, 1);
    silt_fair_queue_turn_pass(&lanes[0], &to); /* fine when there is none */
    silt_fair_queue_turn_leave(&to);
    assert_int_equal(all.taken, 1);
}

TEST(a_place_without_a_user_counts_among_all_only)
{
    struct silt_fair_queue_turn to;
    begin(2, 1);
    assert_true(silt_fair_queue_turn_enter(&lanes[0]));
    assert_false(silt_fair_queue_turn_enter(&lanes[1]));
    silt_fair_queue_turn_pass(&lanes[0], &to);
    silt_fair_queue_turn_disown(&to);
    assert_string_equal(turns, "1");
    assert_int_equal(all.taken, 2);
    assert_false(silt_fair_queue_turn_enter(&lanes[3]));
    silt_fair_queue_turn_leave(&to);
    assert_string_equal(turns, "13");
    assert_int_equal(all.taken, 2);
}
