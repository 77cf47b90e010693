/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/rlimit.h"
#include "base/own.h"

#include <sys/resource.h>

struct row {
    __rlimit_resource_t what;
    rlim_t soft;
    rlim_t hard;
};

/* A core limit of exactly 1 also keeps a core_pattern that starts with `|` from running the
 * machine's helper (fs/coredump.c); 0 would not. silt-init's data segment has a soft limit, because
 * it is outside the guest's memory group; its children raise the limit again. Open files count
 * against the machine-wide fs.file-max; `silt doctor` checks that it is large enough for one
 * sandbox. */
static const struct row sandbox[] = {
    {RLIMIT_CORE, 1, 1},
    {RLIMIT_DATA, 16 << 20, RLIM_INFINITY},
    {RLIMIT_NOFILE, 1024, 16384},
    {RLIMIT_STACK, 8 << 20, RLIM_INFINITY},
    {RLIMIT_MEMLOCK, 8 << 20, 8 << 20},
    {RLIMIT_MSGQUEUE, 819200, 819200},
    {RLIMIT_NICE, 0, 0},
    {RLIMIT_RTPRIO, 0, 0},
};

static const struct row fetch[] = {
    {RLIMIT_CORE, 1, 1},
    {RLIMIT_NOFILE, 64, 64},
    {RLIMIT_STACK, 8 << 20, 8 << 20},
    {RLIMIT_FSIZE, 64LL << 30, 64LL << 30},
    {RLIMIT_CPU, 7200, 7200}, /* far more than an import needs; the hard limit kills PID 1, too */
};

static int apply(const struct row *rows, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++) {
        struct rlimit now;
        if (getrlimit(rows[i].what, &now) < 0)
            return silt_fail_errno(e, "read resource limit %d", (int)rows[i].what);
        struct rlimit next = {.rlim_cur = rows[i].soft, .rlim_max = rows[i].hard};
        if (next.rlim_max > now.rlim_max)
            next.rlim_max = now.rlim_max;
        if (next.rlim_cur > next.rlim_max)
            next.rlim_cur = next.rlim_max;
        if (setrlimit(rows[i].what, &next) < 0)
            return silt_fail_errno(e, "set resource limit %d", (int)rows[i].what);
    }
    return 0;
}

int silt_rlimit_sandbox(struct silt_error *e)
{
    return apply(sandbox, SILT_COUNT(sandbox), e);
}

int silt_rlimit_command(struct silt_error *e)
{
    struct rlimit data;
    if (silt_rlimit_sandbox(e) < 0)
        return -1;
    if (getrlimit(RLIMIT_DATA, &data) < 0)
        return silt_fail_errno(e, "read the limit of data");
    data.rlim_cur = data.rlim_max;
    if (setrlimit(RLIMIT_DATA, &data) < 0)
        return silt_fail_errno(e, "set the limit of data");
    return 0;
}

int silt_rlimit_fetch(struct silt_error *e)
{
    return apply(fetch, SILT_COUNT(fetch), e);
}

void silt_rlimit_many_files(void)
{
    struct rlimit now;
    if (getrlimit(RLIMIT_NOFILE, &now) < 0)
        return;
    now.rlim_cur = now.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &now);
}
