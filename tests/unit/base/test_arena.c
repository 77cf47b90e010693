/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "unit/base/unit.h"

TEST(what_an_arena_gives_is_aligned_and_apart)
{
    silt_auto_arena a;
    silt_arena_init(&a, 1 << 20);
    char *before = NULL;
    for (size_t i = 0; i < 5000; i++) {
        char *p = silt_arena_alloc(&a, 1 + i % 40);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        memset(p, (int)i, 1 + i % 40);
        assert_true(p != before);
        before = p;
    }
}

TEST(an_arena_ends_at_its_ceiling)
{
    silt_auto_arena a;
    silt_arena_init(&a, 64 * 1024);
    assert_null(silt_arena_alloc(&a, 64 * 1024 + 1));
    assert_null(silt_arena_alloc(&a, SIZE_MAX - 3));
    size_t got = 0;
    while (silt_arena_alloc(&a, 1000) != NULL)
        got += 1000;
    assert_in_range(got, 50000, 64 * 1024);
}

TEST(a_reset_arena_starts_over_and_keeps_a_block)
{
    silt_auto_arena a;
    silt_arena_init(&a, 1 << 20);
    char *first = silt_arena_alloc(&a, 10);
    (void)silt_arena_alloc(&a, 100000);
    (void)silt_arena_alloc(&a, 10);
    silt_arena_reset(&a);
    assert_non_null(a.blocks);
    assert_in_range(a.total, 1, 16384);
    assert_non_null(first);
    for (int i = 0; i < 100; i++) {
        assert_non_null(silt_arena_alloc(&a, 10000));
        silt_arena_reset(&a);
    }
}

TEST(a_copy_is_terminated)
{
    silt_auto_arena a;
    silt_arena_init(&a, 1 << 20);
    assert_string_equal(silt_arena_dup(&a, SILT_LIT("abc")), "abc");
    assert_string_equal(silt_arena_dup(&a, (silt_slice){NULL, 0}), "");
}
