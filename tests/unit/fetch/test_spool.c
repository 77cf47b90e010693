/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/spool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_spool_that_ends_early_is_not_blamed_on_an_old_errno(void **state)
{
    struct silt_spool s;
    struct silt_error e;
    silt_auto_buf room;
    (void)state;
    silt_buf_init(&room, 4096);
    assert_int_equal(silt_spool_open(&s, &e), 0);
    errno = ENOSPC;
    assert_int_equal(
        silt_spool_read(&s, &(struct silt_spooled){.name = "x", .size = 10}, 100, &room, &e), -1);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.text, "read the spool: it ended early");
    silt_spool_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spool_that_ends_early_is_not_blamed_on_an_old_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
