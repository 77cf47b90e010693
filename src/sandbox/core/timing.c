/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/timing.h"
#include "base/clock.h"
#include "sandbox/core/registry.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)

static const int64_t bounds_us[SILT_TIMING_BOUNDS] = {
    MS / 2,   1 * MS,   2 * MS, 5 * MS, 10 * MS, 20 * MS, 50 * MS, 100 * MS,
    200 * MS, 500 * MS, 1 * S,  2 * S,  5 * S,   10 * S,  60 * S,  600 * S,
};

static const char *const bounds[SILT_TIMING_BOUNDS + 1] = {
    "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1",  "0.2",
    "0.5",    "1",     "2",     "5",     "10",   "60",   "600",  "+Inf",
};

static const struct kind {
    const char *name, *help;
    const char *label; /* "": none. Kinds of one name follow each other */
} kinds[SILT_TIMING_MAX] = {
    [SILT_TIMING_CREATE] = {"silt_create_seconds", "Creates of sandboxes that then run.", ""},
    [SILT_TIMING_EXEC] = {"silt_exec_seconds", "Commands and processes, from request to end.", ""},
    [SILT_TIMING_WAKE_PAUSED] = {"silt_wake_seconds",
                                 "From the first request for a paused or stopped sandbox until it "
                                 "runs.",
                                 "from=\"paused\""},
    [SILT_TIMING_WAKE_STOPPED] = {"silt_wake_seconds", NULL, "from=\"stopped\""},
    [SILT_TIMING_SNAPSHOT] = {"silt_snapshot_seconds", "Snapshots taken.", ""},
    [SILT_TIMING_FORK] = {"silt_fork_seconds", "Forks, each with all its sandboxes.", ""},
};

void silt_timing_end(struct silt_registry *r, enum silt_timing_kind kind, int64_t begun_us)
{
    struct silt_timing *t = &r->timings[kind];
    int64_t us = silt_clock_us() - begun_us;
    size_t i = 0;
    while (i < SILT_TIMING_BOUNDS && us > bounds_us[i])
        i++;
    t->counts[i]++;
    t->sum_us += (uint64_t)us;
}

static void write_one(struct silt_buf *b, const struct kind *k, const struct silt_timing *t)
{
    const char *open = k->label[0] != 0 ? "{" : "", *close = k->label[0] != 0 ? "}" : "";
    const char *comma = k->label[0] != 0 ? "," : "";
    uint64_t count = 0;
    if (k->help != NULL)
        silt_buf_addf(b, "# HELP %s %s\n# TYPE %s histogram\n", k->name, k->help, k->name);
    for (size_t i = 0; i <= SILT_TIMING_BOUNDS; i++) {
        count += t->counts[i];
        silt_buf_addf(b, "%s_bucket{%s%sle=\"%s\"} %llu\n", k->name, k->label, comma, bounds[i],
                      (unsigned long long)count);
    }
    silt_buf_addf(b, "%s_sum%s%s%s %llu.%06llu\n", k->name, open, k->label, close,
                  (unsigned long long)t->sum_us / 1000000, (unsigned long long)t->sum_us % 1000000);
    silt_buf_addf(b, "%s_count%s%s%s %llu\n", k->name, open, k->label, close,
                  (unsigned long long)count);
}

void silt_timing_write(struct silt_buf *b, const struct silt_timing all[SILT_TIMING_MAX])
{
    for (size_t i = 0; i < SILT_TIMING_MAX; i++)
        write_one(b, &kinds[i], &all[i]);
}
