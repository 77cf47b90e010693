/* SPDX-License-Identifier: Apache-2.0 */
/* engine_tests: the lists of tests and how they speak. Output is TAP: a test is a sentence. */
#pragma once

#include "harness.h"

/* A test ends with the first thing that is not as it should be. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            complain(__FILE__, __LINE__, #condition);                                              \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define CHECK_SAYS(box, question, wanted)                                                          \
    do {                                                                                           \
        const char *said = box_say(box, "%s", question);                                           \
        if (strcmp(said, wanted) != 0) {                                                           \
            complain_said(__FILE__, __LINE__, question, said, wanted);                             \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

void tell_complaint(void); /* for a test that runs in a child */
void complain(const char *file, int line, const char *condition);
void complain_said(const char *file, int line, const char *question, const char *said,
                   const char *wanted);

struct test {
    const char *sentence;
    bool (*run)(struct world *w);
    const char *(*skip)(struct world *w); /* a reason, or NULL; may itself be NULL */
};

/* Each list ends with a NULL sentence. */
extern const struct test sandbox_tests[], life_tests[], image_tests[], cgroup_tests[], net_tests[],
    allow_tests[], captive_tests[], offer_tests[], hostile_tests[];
