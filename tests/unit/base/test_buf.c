/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "unit/base/unit.h"

TEST(a_buf_takes_memory_on_first_use_and_grows)
{
    silt_auto_buf b;
    silt_buf_init(&b, 100000);
    assert_null(b.data);
    for (int i = 0; i < 10000; i++)
        silt_buf_add(&b, SILT_LIT("0123456789"));
    assert_int_equal(b.len, 100000);
    assert_false(b.broken);
    assert_memory_equal(b.data + 99990, "0123456789", 10);
}

TEST(past_its_ceiling_a_buf_is_broken_and_stays_as_it_was)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8);
    silt_buf_add(&b, SILT_LIT("1234567"));
    silt_buf_add(&b, SILT_LIT("xx"));
    assert_true(b.broken);
    silt_buf_add_byte(&b, 'y');
    silt_buf_addf(&b, "%d", 1);
    assert_null(silt_buf_room(&b, 1));
    assert_text(silt_buf_slice(&b), "1234567");
}

TEST(a_cleared_buf_is_whole_again)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4);
    silt_buf_add(&b, SILT_LIT("12345"));
    assert_true(b.broken);
    silt_buf_clear(&b);
    silt_buf_add(&b, SILT_LIT("1234"));
    assert_false(b.broken);
    assert_text(silt_buf_slice(&b), "1234");
}

TEST(a_size_that_would_overflow_breaks_it)
{
    silt_auto_buf b;
    silt_buf_init(&b, SIZE_MAX);
    silt_buf_add(&b, SILT_LIT("x"));
    assert_null(silt_buf_room(&b, SIZE_MAX));
    assert_true(b.broken);
}

TEST(text_is_formatted_and_bytes_are_dropped_from_the_front)
{
    silt_auto_buf b;
    silt_buf_init(&b, 100);
    silt_buf_addf(&b, "%s=%d", "abc", 42);
    silt_buf_drop(&b, 2);
    assert_text(silt_buf_slice(&b), "c=42");
    silt_buf_drop(&b, 4);
    assert_int_equal(b.len, 0);
}

TEST(a_finished_buf_is_usable_again)
{
    silt_auto_buf b;
    silt_buf_init(&b, 4);
    silt_buf_add(&b, SILT_LIT("1234"));
    silt_buf_fini(&b);
    assert_int_equal(b.max, 4);
    silt_buf_add(&b, SILT_LIT("abcd"));
    assert_text(silt_buf_slice(&b), "abcd");
}
