/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/exec.h"
#include "base/own.h"

#include <stdlib.h>
#include <sys/wait.h>

/* One is kept for the next command: the C library would return its page and request it again. */
static struct silt_exec *resting;

static struct silt_exec *make_exec(void)
{
    struct silt_exec *x = resting != NULL ? resting : malloc(sizeof(*x));
    if (x == NULL)
        abort();
    resting = NULL;
    memset(x, 0, sizeof(*x));
    return x;
}

static void unmake_exec(struct silt_exec *x)
{
    if (resting != NULL)
        free(x);
    else
        resting = x;
}

static void free_exec(struct silt_grave *g)
{
    struct silt_exec *x = silt_outer(g, struct silt_exec, grave);
    silt_start_frame_fini(&x->start);
    silt_close_fd(&x->out);
    silt_close_fd(&x->err);
    silt_close_fd(&x->state_file);
    silt_log_writer_close(&x->log);
    silt_input_fini(&x->input);
    unmake_exec(x);
}

static void open_log(struct silt_exec *x)
{
    silt_log_writer_open(&x->log, silt_take_fd(&x->start.log));
    x->outlet.log = &x->log;
    x->outlet.pace = &x->agent->pace;
    x->outlet.holding = (x->start.head.flags & SILT_START_HOLD) != 0;
}

struct silt_exec *silt_exec_new(struct silt_agent *a, uint64_t id, struct silt_start_frame *start)
{
    struct silt_exec *x = make_exec();
    x->agent = a;
    x->id = id;
    x->born = a->sweep;
    x->start = silt_start_frame_take(start);
    x->grave.free = free_exec;
    x->out = x->err = x->state_file = x->log.fd = x->leader.fd = -1;
    x->control = x->gate = x->answer.fd = -1;
    if ((x->start.head.flags & SILT_START_FORK) != 0) {
        x->from = x->start.head.session;
        x->start.head.session = 0;
    }
    x->launch =
        (struct silt_launch){.loop = &a->loop, .children = &a->children, .report = {.fd = -1}};
    x->mark = silt_limit_events_read(&a->meter);
    silt_output_init(&x->outlet, &a->loop, &a->channel);
    silt_input_init(&x->input, &a->loop, &a->channel);
    x->input.id = id;
    x->input.wanted = (x->start.head.flags & SILT_START_STDIN) != 0;
    if (x->start.log >= 0)
        open_log(x);
    silt_list_append(&a->execs, &x->link);
    return x;
}

struct silt_exec *silt_exec_find(struct silt_agent *a, uint64_t id)
{
    silt_list_each(it, &a->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        if (x->id == id)
            return x;
    }
    return NULL;
}

void silt_exec_say_started(struct silt_exec *x, pid_t pid)
{
    int32_t number = pid;
    struct silt_say s = {
        .type = SILT_AGENT_STARTED, .id = x->id, .head = {(const char *)&number, sizeof(number)}};
    x->pid = pid;
    silt_channel_say(&x->agent->channel, &s);
}

/* The handle of an adopted process is not shared. */
static void leave_handle(struct silt_exec *x)
{
    struct silt_handle *h = x->handle;
    if (h == NULL)
        return;
    if (h != &x->adopted_handle) {
        silt_handle_leave(&x->agent->handles, h, x->start.head.session);
        return;
    }
    for (size_t i = 0; i < SILT_HANDLE_FDS_V2; i++)
        silt_close_fd(&h->fds[i]);
}

static void leave_leader(struct silt_exec *x)
{
    if (x->leader.fd < 0)
        return;
    silt_loop_forget(&x->agent->loop, &x->leader);
    silt_close_fd(&x->leader.fd);
}

static void leave(struct silt_exec *x)
{
    struct silt_agent *a = x->agent;
    x->state = SILT_EXEC_DONE;
    silt_list_remove(&x->link);
    silt_loop_cancel(&a->loop, &x->deadline);
    silt_flush_stop(x);
    silt_output_abandon(&x->outlet);
    silt_input_close(&x->input);
    silt_kill_tree_stop(&x->purge);
    silt_handle_stop_waiting(&x->wait);
    silt_launch_forget(&x->launch);
    silt_loop_bury(&a->loop, &x->grave);
    leave_leader(x);
    a->on_exec_leaving(x);
    leave_handle(x);
    a->on_exec_left(x);
}

static void note_limits(struct silt_exec *x)
{
    const struct silt_limit_events *m = &x->agent->meter;
    struct silt_limit_events_mark now = silt_limit_events_read(m);
    if (now.oom_kills > x->mark.oom_kills) {
        x->end.flags |= SILT_END_OOM;
        x->end.peak_bytes = silt_limit_events_peak(m);
    }
    if (now.refused_forks > x->mark.refused_forks)
        x->end.flags |= SILT_END_PIDS;
}

void silt_exec_end(struct silt_exec *x, silt_slice cwd)
{
    note_limits(x);
    x->end.cwd_len = (uint32_t)cwd.len;
    silt_log_writer_end(&x->log, &x->end);
    struct silt_say s = {.type = SILT_AGENT_ENDED,
                         .id = x->id,
                         .head = {(const char *)&x->end, sizeof(x->end)},
                         .tail = cwd};
    silt_channel_say(&x->agent->channel, &s);
    leave(x);
}

void silt_exec_fail(struct silt_exec *x, const struct silt_error *e)
{
    silt_channel_say_failed(&x->agent->channel, x->id, e);
    leave(x);
}

void silt_exec_set_status(struct silt_agent_end *end, int status)
{
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end->code = end->signal != 0 ? 128 + end->signal : WEXITSTATUS(status);
}
