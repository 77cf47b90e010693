/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/language.h"
#include "base/own.h"
#include "wire/agent.h"

/* Arguments, each NUL-terminated. */
static const char python[] = "python3\0-I\0" SILT_KERNELS "/python/kernel";
#define NODE "node\0--no-force-async-hooks-checks\0" SILT_KERNELS "/node/kernel.cjs"
static const char node[] = NODE;
static const char javascript[] = NODE "\0javascript", typescript[] = NODE "\0typescript";

static const struct {
    const char *name;
    silt_slice command, spare; /* prestarted; empty: not supported */
} languages[SILT_LANGUAGE_MAX] = {
    [SILT_PYTHON] = {"python", {python, sizeof(python)}, {NULL, 0}},
    [SILT_JAVASCRIPT] = {"javascript", {node, sizeof(node)}, {javascript, sizeof(javascript)}},
    [SILT_TYPESCRIPT] = {"typescript", {node, sizeof(node)}, {typescript, sizeof(typescript)}},
};

silt_slice silt_language_command(enum silt_language l)
{
    return languages[l].command;
}

silt_slice silt_language_spare(enum silt_language l)
{
    return languages[l].spare;
}

const char *silt_language_name(enum silt_language l)
{
    return languages[l].name;
}

bool silt_language_find(silt_slice name, enum silt_language *ret)
{
    static const struct {
        const char *name;
        enum silt_language language;
    } names[] = {
        {"python", SILT_PYTHON}, {"python3", SILT_PYTHON},  {"javascript", SILT_JAVASCRIPT},
        {"js", SILT_JAVASCRIPT}, {"node", SILT_JAVASCRIPT}, {"typescript", SILT_TYPESCRIPT},
        {"ts", SILT_TYPESCRIPT},
    };
    for (size_t i = 0; i < SILT_COUNT(names); i++)
        if (silt_slice_ieq(name, silt_slice_of(names[i].name))) {
            *ret = names[i].language;
            return true;
        }
    return false;
}
