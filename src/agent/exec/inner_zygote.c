/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/inner_zygote.h"
#include "agent/spawn/test_holes.h"
#include "base/own.h"
#include "wire/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK_MS = 3000 }; /* timeout of an answer; a fork takes a few ms */

/* Shut down for reading: a descriptor sent by the guest would be ours to close, which may block. */
int silt_inner_zygote_open(struct silt_exec *x, int *ret_theirs, struct silt_error *e)
{
    int pair[2];
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    x->control = pair[0];
    *ret_theirs = pair[1];
    if (fcntl(x->control, F_SETFL, O_NONBLOCK) < 0 || shutdown(x->control, SHUT_RD) < 0)
        return silt_fail_errno(e, "prepare a socket");
    return 0;
}

static void end_asking(struct silt_exec *x)
{
    if (x->answer.fd < 0)
        return;
    silt_loop_forget(&x->agent->loop, &x->answer);
    silt_close_fd(&x->answer.fd);
    silt_loop_cancel(&x->agent->loop, &x->deadline);
}

void silt_inner_zygote_leave(struct silt_exec *x)
{
    end_asking(x);
    silt_close_fd(&x->gate);
    silt_close_fd(&x->control);
}

struct search {
    pid_t pid;
    bool found;
};

static bool visit(void *arg, pid_t id)
{
    struct search *s = arg;
    s->found = id == s->pid;
    return !s->found;
}

/* A forked process starts in the group of the process that forked it. */
static bool is_among(const struct silt_exec *warm, pid_t pid)
{
    struct search s = {.pid = pid};
    return warm != NULL && warm->handle != NULL && silt_handle_visit(warm->handle, visit, &s) == 0
           && s.found;
}

/* Checks the reported pid: it must be a live child of ours that no other object waits for (it stays
 * one until we reap it), and no orphan of another command, which ends with that command. */
static bool is_ours(const struct silt_exec *x, pid_t pid)
{
    siginfo_t info;
    return pid > 1 && !silt_child_is_known(&x->agent->children, pid)
           && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0
           && (silt_without("inner_zygote") || is_among(silt_exec_find(x->agent, x->from), pid));
}

static int take(struct silt_exec *x, pid_t pid, struct silt_error *e)
{
    if (!is_ours(x, pid))
        return silt_fail(e, SILT_UNAVAILABLE, "process %d is none that was forked", (int)pid);
    if (silt_handle_move(x->handle, pid) < 0)
        return silt_fail_errno(e, "move a forked process to its group");
    if (write(x->gate, "", 1) != 1)
        return silt_fail_errno(e, "let a forked process go on");
    silt_close_fd(&x->gate);
    x->pid = pid;
    silt_launch_adopt(&x->launch, pid);
    return 0;
}

static void on_answer(struct silt_watch *w, uint32_t events)
{
    struct silt_exec *x = silt_outer(w, struct silt_exec, answer);
    struct silt_error e;
    int32_t pid = 0;
    ssize_t n = read(w->fd, &pid, sizeof(pid));
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    end_asking(x);
    bool taken = n == (ssize_t)sizeof(pid)
                     ? take(x, pid, &e) == 0
                     : silt_fail(&e, SILT_UNAVAILABLE, "the warm interpreter does not fork") == 0;
    x->on_forked(x, taken ? NULL : &e);
}

static void on_late(struct silt_timer *t)
{
    struct silt_exec *x = silt_outer(t, struct silt_exec, deadline);
    struct silt_error e;
    end_asking(x);
    (void)silt_fail(&e, SILT_UNAVAILABLE, "the warm interpreter does not answer");
    x->on_forked(x, &e);
}

static int ask(struct silt_exec *x, int control, int answer, int gate, struct silt_error *e)
{
    char byte = 0;
    struct silt_parcel out = {.data = &byte, .len = sizeof(byte), .nfds = SILT_INSIDE_FDS};
    out.fds[SILT_INSIDE_REQUESTS] = x->start.secret;
    out.fds[SILT_INSIDE_OUT] = x->start.out;
    out.fds[SILT_INSIDE_ERR] = x->start.err;
    out.fds[SILT_INSIDE_LINES] = x->start.lines;
    out.fds[SILT_INSIDE_ANSWER] = answer;
    out.fds[SILT_INSIDE_GATE] = gate;
    return silt_fd_send(control, &out, e);
}

int silt_inner_zygote_fork(struct silt_exec *x, struct silt_error *e)
{
    const struct silt_exec *warm = silt_exec_find(x->agent, x->from);
    int answer[2], gate[2];
    if (warm == NULL || warm->control < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "the warm interpreter is gone");
    if (pipe2(answer, O_CLOEXEC | O_NONBLOCK) < 0)
        return silt_fail_errno(e, "create a pipe");
    x->answer = (struct silt_watch){.fd = answer[0], .on_ready = on_answer};
    silt_auto_fd theirs = answer[1];
    if (pipe2(gate, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    silt_auto_fd closed = gate[0];
    x->gate = gate[1];
    /* Root inside can open it by its name and fill it. */
    if (!silt_without("inner_zygote") && fcntl(x->gate, F_SETFL, O_NONBLOCK) < 0)
        return silt_fail_errno(e, "prepare a pipe");
    if (ask(x, warm->control, theirs, closed, e) < 0)
        return -1;
    silt_start_frame_fini(&x->start);
    x->deadline.on_time = on_late;
    silt_loop_after(&x->agent->loop, &x->deadline, FORK_MS);
    silt_loop_watch(&x->agent->loop, &x->answer, EPOLLIN);
    return 0;
}
