/* SPDX-License-Identifier: Apache-2.0 */
/* bench_agent: how long a command takes through silt-init's channel, without siltd. Not a test: it
 * prints. The tenth percentile is what the machine can do, the others are what it did. */
#include "unit/agent/rig.h"

#include <unistd.h>

enum { ROUNDS_MAX = 2000 };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void measure(struct rig *r, const char *name, struct rig_exec x, size_t rounds,
                    unsigned pause_us)
{
    static int64_t took[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        if (pause_us > 0)
            (void)usleep(pause_us);
        int64_t from = rig_now_us();
        rig_run(r, &x);
        took[i] = rig_now_us() - from;
        if (x.failed) {
            (void)printf("%-24s %s\n", name, x.error.text);
            return;
        }
    }
    rig_free(&x);
    qsort(took, rounds, sizeof(took[0]), by_value);
    (void)printf("%-24s p10 %5lld  p50 %5lld  p99 %5lld us\n", name, (long long)took[rounds / 10],
                 (long long)took[rounds / 2], (long long)took[rounds * 99 / 100]);
    (void)fflush(stdout);
}

static void measure_all(struct rig *r, uint64_t s, size_t rounds, unsigned pause_us)
{
    struct rig_exec fore = {.session = s, .mode = SILT_EXEC_FOREGROUND, .command = "true"};
    struct rig_exec back = {.session = s, .mode = SILT_EXEC_BACKGROUND, .command = "echo hi"};
    struct rig_exec plain = {
        .mode = SILT_EXEC_PLAIN, .cwd = "/tmp", .env = "PATH=/bin\nHOME=/root"};
    measure(r, "session true", fore, rounds, pause_us);
    fore.command = "echo hi";
    measure(r, "session echo", fore, rounds, pause_us);
    fore.env = "A=1";
    measure(r, "session echo, env", fore, rounds, pause_us);
    fore.cwd = "/usr";
    measure(r, "session echo, env, cwd", fore, rounds, pause_us);
    fore.env = fore.cwd = NULL;
    fore.timeout_ms = 30000;
    measure(r, "session echo, timeout", fore, rounds, pause_us);
    fore.timeout_ms = 0;
    fore.command = "/bin/true";
    measure(r, "session /bin/true", fore, rounds, pause_us);
    plain.command = "true";
    measure(r, "plain true", plain, rounds / 2, pause_us);
    plain.command = "/bin/true";
    measure(r, "plain /bin/true", plain, rounds / 2, pause_us);
    measure(r, "background echo", back, rounds / 2, pause_us);
}

int main(void)
{
    struct rig *r = rig_start(&(struct rig_options){.memory = 1 << 30, .pids = 1000});
    if (r == NULL)
        return 1;
    uint64_t s = rig_open(r, "/tmp", NULL);
    (void)printf("one after the other\n");
    measure_all(r, s, 1000, 0);
    (void)printf("60 ms apart\n");
    measure_all(r, s, 60, 60000);
    rig_stop(r);
    return 0;
}
