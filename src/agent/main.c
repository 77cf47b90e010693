/* SPDX-License-Identifier: Apache-2.0 */
/* silt-init: PID 1 of a sandbox, started as described in wire/agent.h; when it exits, the sandbox
 * ends. */
#include "agent/exec/agent.h"
#include "base/slice.h"

#include <string.h>
#include <unistd.h>

static struct silt_agent agent;

static int parse(const char *text, uint64_t max, size_t *ret, struct silt_error *e)
{
    uint64_t n;
    if (silt_slice_to_u64(silt_slice_of(text), 0, max, &n, e) < 0)
        return -1;
    *ret = (size_t)n;
    return 0;
}

static int run(char **argv, struct silt_error *e)
{
    size_t mode;
    size_t joins;
    size_t handles;
    if (parse(argv[1], 2, &mode, e) < 0 || parse(argv[2], SILT_JOINS_MAX, &joins, e) < 0
        || parse(argv[3], SILT_HANDLES_MAX, &handles, e) < 0)
        return silt_because(e, "usage: silt-init <cgroup mode> <join descriptors> <handles>");
    if (silt_agent_open(&agent, (int)mode, joins, handles, e) < 0)
        return -1;
    return silt_loop_run(&agent.loop, e);
}

int main(int argc, char **argv)
{
    struct silt_error e;
    if (argc != 4)
        (void)silt_fail(&e, SILT_INVALID, "silt-init needs three arguments");
    else
        (void)run(argv, &e);
    /* The loop ends only on an error. Inside a sandbox this goes to /dev/null; tests read it. */
    if (write(STDERR_FILENO, e.text, strlen(e.text)) < 0)
        return 2;
    return 1;
}
