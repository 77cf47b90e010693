/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"
#include "base/own.h"
#include "unit/base/unit.h"

struct item {
    int number;
    struct silt_link link;
};

TEST(a_list_keeps_its_order)
{
    struct silt_link list;
    struct item items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    int at = 0;
    silt_list_init(&list);
    assert_null(silt_list_first(&list, struct item, link));
    for (int i = 0; i < 3; i++)
        silt_list_append(&list, &items[i].link);
    assert_ptr_equal(silt_list_first(&list, struct item, link), &items[0]);
    silt_list_each(it, &list) assert_int_equal(silt_outer(it, struct item, link)->number, at++);
    assert_int_equal(at, 3);
}

TEST(an_item_may_be_removed_during_a_walk_and_removed_again)
{
    struct silt_link list;
    struct item items[4];
    silt_list_init(&list);
    for (int i = 0; i < 4; i++) {
        items[i].number = i;
        silt_list_append(&list, &items[i].link);
    }
    silt_list_each(it, &list) if (silt_outer(it, struct item, link)->number % 2 == 0)
        silt_list_remove(it);
    silt_list_remove(&items[0].link);
    assert_true(silt_list_empty(&items[0].link));
    assert_ptr_equal(silt_list_first(&list, struct item, link), &items[1]);
    assert_ptr_equal(list.prev, &items[3].link);
    silt_list_remove(&items[1].link);
    silt_list_remove(&items[3].link);
    assert_true(silt_list_empty(&list));
}
