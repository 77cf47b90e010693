/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/agent.h"
#include "agent/exec/inner_zygote.h"
#include "agent/exec/session.h"
#include "agent/exec/spare_shell.h"
#include "agent/exec/sweep.h"
#include "agent/shell/dev_silt.h"
#include "agent/shell/state.h"
#include "agent/spawn/test_holes.h"
#include "base/own.h"

#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

static struct silt_spare_shell spare; /* there is one agent */

static void on_lonely(struct silt_timer *t)
{
    (void)t;
    _exit(0); /* the kernel then ends the sandbox */
}

/* silt-super keeps the other end open across restarts of siltd: if it closes, no siltd will come
 * back. */
static void on_gone(struct silt_channel *c)
{
    struct silt_agent *a = silt_outer(c, struct silt_agent, channel);
    a->lonely.on_time = on_lonely;
    silt_loop_after(&a->loop, &a->lonely, SILT_PEER_GRACE_MS);
    silt_list_each(it, &a->execs) silt_output_drop(&silt_outer(it, struct silt_exec, link)->outlet);
}

static void on_need(struct silt_handles *all, unsigned how_many)
{
    struct silt_agent *a = silt_outer(all, struct silt_agent, handles);
    struct silt_say s = {.type = SILT_AGENT_NEED_HANDLES, .flags = how_many};
    silt_channel_say(&a->channel, &s);
}

static void on_wait(struct silt_handles *all)
{
    silt_spare_shell_drop(silt_outer(all, struct silt_agent, handles)->spare);
}

static void on_reaped(struct silt_children *all)
{
    struct silt_agent *a = silt_outer(all, struct silt_agent, children);
    silt_kill_tree_poke(&a->purges);
    silt_handles_poke(&a->handles);
}

static void on_exec_leaving(struct silt_exec *x)
{
    silt_inner_zygote_leave(x);
    if (x->handle != NULL)
        silt_sweep_unprotect(x->agent, x->handle, x->handle == &x->adopted_handle);
}

static void on_exec_left(struct silt_exec *x)
{
    silt_session_exec_left(x->agent, x->start.head.session);
}

/* The guest must not be able to inspect this process, and no descriptor of ours may leak into the
 * guest. */
static int close_doors(struct silt_error *e)
{
    unsigned last = silt_without("close_fds") ? SILT_UNSAFE_FD - 1 : ~0U;
    if (!silt_without("proc_exe") && prctl(PR_SET_DUMPABLE, 0) < 0)
        return silt_fail_errno(e, "become undumpable");
    if (syscall(SYS_close_range, 3U, last, CLOSE_RANGE_CLOEXEC) < 0)
        return silt_fail_errno(e, "mark descriptors close-on-exec");
    /* Fill the numbers of missing counters, which then read as empty: no descriptor of a command
     * may get them. */
    for (int fd = SILT_AGENT_FD_OOM; fd < SILT_AGENT_FD_FIRST; fd++)
        if (fcntl(fd, F_GETFD) < 0 && dup3(STDIN_FILENO, fd, O_CLOEXEC) < 0)
            return silt_fail_errno(e, "fill descriptor %d", fd);
    (void)umask(022);
    silt_limits_raise_files();
    return 0;
}

static void take_descriptors(struct silt_agent *a, size_t joins, size_t handles)
{
    int fds[SILT_HANDLES_MAX * SILT_HANDLE_FDS_V2];
    int next = SILT_AGENT_FD_FIRST;
    size_t count = handles * (a->handles.mode == 1 ? SILT_HANDLE_FDS_V1 : SILT_HANDLE_FDS_V2);
    for (a->joins.count = 0; a->joins.count < joins; a->joins.count++)
        a->joins.fds[a->joins.count] = next++;
    for (size_t i = 0; i < count; i++)
        fds[i] = next++;
    silt_handles_add(&a->handles, fds, count);
}

int silt_agent_open(struct silt_agent *a, int mode, size_t joins, size_t handles,
                    struct silt_error *e)
{
    silt_list_init(&a->execs);
    silt_list_init(&a->sessions);
    silt_list_init(&a->purges);
    silt_list_init(&a->workers);
    silt_list_init(&a->sweeps);
    a->meter = (struct silt_limit_events){
        .oom = SILT_AGENT_FD_OOM, .peak = SILT_AGENT_FD_PEAK, .pids = SILT_AGENT_FD_PIDS};
    a->channel.on_frame = silt_dispatch_frame;
    a->channel.on_gone = on_gone;
    a->children.on_reaped = on_reaped;
    a->handles.on_need = on_need;
    a->handles.on_wait = on_wait;
    a->on_exec_leaving = on_exec_leaving;
    a->on_exec_left = on_exec_left;
    a->spare = &spare;
    silt_spare_shell_init(a->spare, a);
    if (close_doors(e) < 0 || silt_loop_open(&a->loop, e) < 0)
        return -1;
    silt_handles_init(&a->handles, &a->loop, mode);
    silt_drains_init(&a->drains, &a->loop);
    silt_log_rate_init(&a->pace, &a->loop);
    take_descriptors(a, joins, handles);
    if (silt_dev_silt_open(&a->directory, e) < 0 || silt_state_install(a->directory, e) < 0)
        return -1;
    if (silt_children_open(&a->children, &a->loop, e) < 0)
        return -1;
    return silt_channel_open(&a->channel, &a->loop, SILT_AGENT_FD_CHANNEL, e);
}
