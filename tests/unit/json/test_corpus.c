/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of the corpus: no valid document refused, no other one taken. */
#include "json/json.h"
#include "unit/base/table.h"
#include "unit/base/unit.h"
#include "unit/json/tree.h"

static int wrong;

static void complain(const struct table_case *c, const char *what)
{
    print_message("%c %s: %s\n", c->verdict, c->name, what);
    wrong++;
}

/* Written and read again, it is written the same, also by the writer of whole trees. */
static void check_round_trip(const struct table_case *c, const struct silt_json *v)
{
    silt_auto_arena arena;
    silt_auto_buf one, two;
    struct silt_error e;
    silt_arena_init(&arena, 1 << 24);
    silt_buf_init(&one, 1 << 24);
    silt_buf_init(&two, 1 << 24);
    tree_write(&one, v);
    if (silt_json_read(&arena, silt_buf_slice(&one), &v, &e) < 0) {
        complain(c, e.text);
        return;
    }
    silt_json_value(&two, v);
    if (!silt_slice_eq(silt_buf_slice(&one), silt_buf_slice(&two)))
        complain(c, "is written differently after a round trip");
}

static void check_case(void *context, const struct table_case *c)
{
    silt_auto_arena arena;
    struct silt_error e = {0};
    const struct silt_json *v;
    (void)context;
    silt_arena_init(&arena, 1 << 26);
    bool taken = silt_json_read(&arena, c->bytes, &v, &e) == 0;
    if (c->verdict == 'y' && !taken)
        complain(c, e.text);
    else if (c->verdict != 'y' && taken)
        complain(c, "was taken");
    else if (!taken && e.code != SILT_INVALID)
        complain(c, "has the wrong code");
    else if (taken)
        check_round_trip(c, v);
}

TEST(the_corpus_is_judged_as_the_rfc_says)
{
    wrong = 0;
    size_t count = table_each(CASES, check_case, NULL);
    assert_in_range(count, 280, 10000);
    assert_int_equal(wrong, 0);
}
