/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/tcp_memory.h"
#include "base/clock.h"
#include "base/own.h"
#include "sandbox/core/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { JUST_NOW_MS = 2000 }; /* silt-init reports an end only after its cleanup */

void silt_tcp_memory_init(struct silt_tcp_memory *m, const char *run_dir)
{
    if (snprintf(m->path, sizeof(m->path), "%s/tcp", run_dir) >= (int)sizeof(m->path))
        m->path[0] = 0;
}

static bool read_at(const struct silt_tcp_memory *m, void *into, size_t len, size_t at)
{
    silt_auto_fd fd = m->path[0] == 0 ? -1 : open(m->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && pread(fd, into, len, (off_t)at) == (ssize_t)len;
}

void silt_tcp_memory_sums(const struct silt_tcp_memory *m, struct silt_tcp_sums *ret)
{
    if (!read_at(m, ret, sizeof(*ret), 0))
        *ret = (struct silt_tcp_sums){0};
}

bool silt_tcp_memory_look(const struct silt_tcp_memory *m, uint32_t slot, int64_t since_ms,
                          struct silt_tcp_record *ret)
{
    return read_at(m, ret, sizeof(*ret), sizeof(struct silt_tcp_sums) + slot * sizeof(*ret))
           && ret->at_ms != 0 && ret->at_ms >= since_ms;
}

/* True if processes were killed just now: then that explains a SIGKILL. */
static bool has_killed(const struct silt_tcp_record *r)
{
    return r->killed_ms != 0 && silt_clock_ms() - r->killed_ms < JUST_NOW_MS;
}

void silt_tcp_memory_explain(struct silt_sandbox *s, struct silt_agent_end *end)
{
    struct silt_tcp_record r;
    bool killed = end->signal == SIGKILL || end->code == 128 + SIGKILL;
    end->flags &= ~(uint32_t)SILT_END_TCP;
    if (!killed
        || !silt_tcp_memory_look(&s->registry->tcp_memory, s->row.slot, s->row.started_ms, &r)
        || !has_killed(&r))
        return;
    end->flags |= SILT_END_TCP;
    if (s->row.death.at_ms == r.at_ms)
        return; /* another command has already reported it */
    struct silt_death d = {.cause = "tcp_memory",
                           .at_ms = r.at_ms,
                           .exit_code = end->code,
                           .signal = end->signal,
                           .limit_bytes = r.limit,
                           .peak_bytes = r.used};
    (void)snprintf(
        d.message, sizeof(d.message),
        "all processes were killed because TCP connections held more than their limit of %llu MiB",
        (unsigned long long)(r.limit >> 20));
    silt_sandbox_died(s, &d);
}
