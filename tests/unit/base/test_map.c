/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "unit/base/unit.h"

struct thing {
    char name[16];
    int seen;
};

static silt_slice key_of(const struct thing *t)
{
    return silt_slice_of(t->name);
}

TEST(a_map_finds_what_was_put_and_nothing_else)
{
    static struct thing things[2000];
    struct silt_map m;
    silt_map_init(&m);
    assert_null(silt_map_find(&m, SILT_LIT("x")));
    assert_null(silt_map_remove(&m, SILT_LIT("x")));
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(things[i].name, sizeof(things[i].name), "thing-%d", i);
        silt_map_put(&m, key_of(&things[i]), &things[i]);
    }
    assert_int_equal(m.used, 2000);
    for (int i = 0; i < 2000; i++)
        assert_ptr_equal(silt_map_find(&m, key_of(&things[i])), &things[i]);
    assert_null(silt_map_find(&m, SILT_LIT("thing-2000")));
    silt_map_fini(&m);
}

TEST(a_removed_key_is_gone_and_may_come_back)
{
    struct thing a = {.name = "a"}, b = {.name = "b"};
    struct silt_map m;
    silt_map_init(&m);
    silt_map_put(&m, key_of(&a), &a);
    silt_map_put(&m, key_of(&b), &b);
    assert_ptr_equal(silt_map_remove(&m, SILT_LIT("a")), &a);
    assert_null(silt_map_find(&m, SILT_LIT("a")));
    assert_ptr_equal(silt_map_find(&m, SILT_LIT("b")), &b);
    silt_map_put(&m, key_of(&a), &a);
    assert_ptr_equal(silt_map_find(&m, SILT_LIT("a")), &a);
    silt_map_fini(&m);
}

TEST(putting_and_removing_for_ever_does_not_grow_the_map)
{
    struct thing a = {.name = "a"};
    struct silt_map m;
    silt_map_init(&m);
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(a.name, sizeof(a.name), "%d", i);
        silt_map_put(&m, key_of(&a), &a);
        assert_ptr_equal(silt_map_remove(&m, key_of(&a)), &a);
    }
    assert_int_equal(m.used, 0);
    assert_in_range(m.cap, 1, 64);
    silt_map_fini(&m);
}

TEST(a_walk_meets_each_value_once)
{
    struct thing things[50] = {0};
    struct silt_map m;
    silt_map_init(&m);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(things[i].name, sizeof(things[i].name), "%d", i);
        silt_map_put(&m, key_of(&things[i]), &things[i]);
    }
    size_t at = 0;
    for (struct thing *t; (t = silt_map_next(&m, &at)) != NULL;)
        t->seen++;
    for (int i = 0; i < 50; i++)
        assert_int_equal(things[i].seen, 1);
    silt_map_fini(&m);
}

TEST(keys_may_hold_any_bytes)
{
    struct thing a, b;
    struct silt_map m;
    silt_map_init(&m);
    silt_map_put(&m, SILT_LIT("x\0y"), &a);
    silt_map_put(&m, SILT_LIT(""), &b);
    assert_ptr_equal(silt_map_find(&m, SILT_LIT("x\0y")), &a);
    assert_null(silt_map_find(&m, SILT_LIT("x")));
    assert_ptr_equal(silt_map_find(&m, SILT_LIT("")), &b);
    silt_map_fini(&m);
}
