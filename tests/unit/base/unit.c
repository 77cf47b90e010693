/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/unit.h"

enum { TESTS_MAX = 256 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;

void unit_add(const char *name, CMUnitTestFunction run)
{
    if (count == TESTS_MAX)
        abort();
    tests[count++] = (struct CMUnitTest){.name = name, .test_func = run};
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests("unit", tests, count, NULL, NULL);
}
