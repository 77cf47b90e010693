/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/copy_target.h"
#include "unit/base/unit.h"

static struct silt_copy_target place;
static struct silt_error e;

TEST(a_word_before_a_colon_is_a_sandbox)
{
    assert_int_equal(silt_copy_target_parse("box:/tmp/a:b", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_BOX);
    assert_string_equal(place.id, "box");
    assert_string_equal(place.path, "/tmp/a:b");
    assert_int_equal(silt_copy_target_parse("box:", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_BOX);
    assert_string_equal(place.path, "");
}

TEST(a_colon_behind_a_slash_is_part_of_a_name)
{
    assert_int_equal(silt_copy_target_parse("./a:b", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_LOCAL);
    assert_int_equal(silt_copy_target_parse("/x:y", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_LOCAL);
    assert_int_equal(silt_copy_target_parse(":x", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_LOCAL);
    assert_int_equal(silt_copy_target_parse("-", &place, &e), 0);
    assert_int_equal(place.kind, SILT_COPY_TARGET_STDIO);
}

TEST(a_wrong_id_is_told_with_the_way_out)
{
    assert_int_equal(silt_copy_target_parse("bad..id:x", &place, &e), -1);
    assert_non_null(strstr(e.text, "./bad..id:x"));
    assert_int_equal(silt_copy_target_parse("", &place, &e), -1);
}

TEST(the_last_name_of_a_path)
{
    assert_text(silt_copy_target_name("/a/b"), "b");
    assert_text(silt_copy_target_name("/a/b//"), "b");
    assert_text(silt_copy_target_name("b"), "b");
    assert_text(silt_copy_target_name("/"), "");
    assert_text(silt_copy_target_name("a/.."), "");
    assert_text(silt_copy_target_name("."), "");
    assert_text(silt_copy_target_name("..."), "...");
}

TEST(a_name_is_added_behind_one_slash)
{
    char path[PATH_MAX] = "/a";
    assert_int_equal(silt_copy_target_add(path, SILT_LIT("b"), &e), 0);
    assert_string_equal(path, "/a/b");
    assert_int_equal(silt_copy_target_add(path, SILT_LIT(""), &e), 0);
    assert_string_equal(path, "/a/b");
    (void)snprintf(path, sizeof(path), "/a/");
    assert_int_equal(silt_copy_target_add(path, SILT_LIT("b"), &e), 0);
    assert_string_equal(path, "/a/b");
    (void)snprintf(path, sizeof(path), "%s", "");
    assert_int_equal(silt_copy_target_add(path, SILT_LIT("b"), &e), 0);
    assert_string_equal(path, "b");
    memset(path, 'x', PATH_MAX - 1);
    path[PATH_MAX - 1] = 0;
    assert_int_equal(silt_copy_target_add(path, SILT_LIT("b"), &e), -1);
}
