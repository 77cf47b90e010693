/* SPDX-License-Identifier: Apache-2.0 */
/* engine-test: drives a silt-priv over its own socket for what the API cannot see. Needs root. */
#include "engine_tests.h"

#include <stdio.h>
#include <stdlib.h>

static char complaint[2048];

void complain(const char *file, int line, const char *condition)
{
    (void)snprintf(complaint, sizeof(complaint), "%s:%d: not true: %s (last error: %s)", file, line,
                   condition, last_error());
}

void tell_complaint(void)
{
    printf("# %s\n", complaint);
}

void complain_said(const char *file, int line, const char *question, const char *said,
                   const char *wanted)
{
    (void)snprintf(complaint, sizeof(complaint), "%s:%d: %s: said \"%.300s\", wanted \"%s\"", file,
                   line, question, said, wanted);
}

static const struct test *const lists[] = {sandbox_tests, life_tests,  image_tests,
                                           cgroup_tests,  net_tests,   allow_tests,
                                           captive_tests, offer_tests, hostile_tests};

static bool run(struct world *w, const struct test *t, int number)
{
    const char *skip = t->skip != NULL ? t->skip(w) : NULL;
    if (skip != NULL) {
        printf("ok %d - %s # SKIP %s\n", number, t->sentence, skip);
        return true;
    }
    complaint[0] = 0;
    bool good = t->run(w);
    printf("%sok %d - %s\n", good ? "" : "not ", number, t->sentence);
    if (!good)
        tell_complaint();
    for (uint32_t slot = 0; !good && slot < SLOTS; slot++)
        (void)tell(w, SILT_PRIV_DESTROY, slot); /* the next test finds an empty world */
    return good;
}

int main(int argc, char **argv)
{
    struct world w;
    int number = 0, failed = 0;
    const char *only = argc > 2 ? argv[2] : "";
    if (argc < 2) {
        printf("Bail out! usage: engine-test BUILD-DIRECTORY [PART-OF-A-SENTENCE]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (geteuid() != 0) {
        printf("1..0 # SKIP needs root\n");
        return 0;
    }
    world_open(&w, argv[1]);
    world_start_priv(&w, true);
    for (size_t i = 0; i < SILT_COUNT(lists); i++)
        for (const struct test *t = lists[i]; t->sentence != NULL; t++)
            if (strstr(t->sentence, only) != NULL && !run(&w, t, ++number))
                failed++;
    world_close(&w);
    printf("1..%d\n", number);
    return failed > 0;
}
