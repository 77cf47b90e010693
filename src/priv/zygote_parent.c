/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/zygote_parent.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    ASK_MS = 5000,
    FORK_MS = 3000,  /* a fork takes two */
    LOOK_MS = 60000, /* how often to check for one that warms up too slowly */
    CHILDREN_MAX = 16384,
    /* for an exit status that nobody asked for: siltd dropped the context with its sandbox */
    KEPT_MS = 60000,
};

/* ---- in a worker ---- */

static int send_ask(int channel, const struct silt_zygote_parent_ask *ask, int reply,
                    const int *fds, int nfds, struct silt_error *e)
{
    struct silt_zygote_parent_ask copy = *ask;
    struct silt_parcel out = {.data = &copy, .len = sizeof(copy), .fds = {reply}, .nfds = 1 + nfds};
    for (int i = 0; i < nfds; i++)
        out.fds[1 + i] = fds[i];
    return silt_fd_send(channel, &out, e);
}

static int receive_answer(int from, struct silt_zygote_parent_answer *ret, int *ret_pidfd,
                          struct silt_error *e)
{
    struct silt_parcel in = {.data = ret, .len = sizeof(*ret)};
    struct pollfd p = {.fd = from, .events = POLLIN};
    if (poll(&p, 1, ASK_MS) <= 0)
        return silt_fail(e, SILT_UNAVAILABLE, "the zygote parent does not answer");
    if (silt_fd_recv(from, &in, e) <= 0 || in.len != sizeof(*ret)) {
        silt_parcel_close(&in);
        return silt_fail(e, SILT_UNAVAILABLE, "the zygote parent died");
    }
    if (in.nfds == 1)
        *ret_pidfd = silt_take_fd(&in.fds[0]);
    silt_parcel_close(&in);
    if (ret->ok)
        return 0;
    *e = ret->error;
    return -1;
}

int silt_zygote_parent_ask(int channel, const struct silt_zygote_parent_ask *ask, const int *fds,
                           int nfds, struct silt_zygote_parent_answer *ret, int *ret_pidfd,
                           struct silt_error *e)
{
    int pair[2];
    if (channel < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "no Python is kept warm");
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (send_ask(channel, ask, theirs, fds, nfds, e) < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "the zygote parent is gone");
    silt_close_fd(&theirs);
    return receive_answer(ours, ret, ret_pidfd, e);
}

/* ---- zygote_parent ---- */

struct child {
    pid_t pid; /* 0: it has ended */
    uint32_t slot;
    uint32_t handle;
    uint64_t number;
    int status;
    int64_t ended_ms;
};

struct parent {
    int channel, signals;
    struct silt_zygote_pool pool;
    struct child *children; /* owned */
    size_t count, room;
};

/* ---- its children ---- */

static void reap(struct parent *n)
{
    int status;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
        if (silt_zygote_pool_on_died(&n->pool, pid, status))
            continue;
        for (size_t i = 0; i < n->count; i++) {
            if (n->children[i].pid != pid)
                continue;
            if (WIFEXITED(status) && (unsigned)WEXITSTATUS(status) - SILT_ZYGOTE_LOST < 8)
                silt_log(SILT_LOG_WARN, "zygote_parent.lost", "slot=%u step=%d",
                         n->children[i].slot, WEXITSTATUS(status) - SILT_ZYGOTE_LOST);
            silt_log(SILT_LOG_DEBUG, "zygote_parent.ended", "slot=%u status=0x%x",
                     n->children[i].slot, (unsigned)status);
            n->children[i].pid = 0;
            n->children[i].status = status;
            n->children[i].ended_ms = silt_clock_ms();
        }
    }
}

static void remove_child(struct parent *n, size_t i)
{
    n->children[i] = n->children[--n->count];
}

static void forget_old(struct parent *n)
{
    int64_t before = silt_clock_ms() - KEPT_MS;
    for (size_t i = n->count; i-- > 0;)
        if (n->children[i].pid == 0 && n->children[i].ended_ms < before)
            remove_child(n, i);
}

static bool has_room(struct parent *n)
{
    if (n->count == n->room)
        forget_old(n);
    if (n->count < n->room)
        return true;
    if (n->room >= CHILDREN_MAX)
        return false;
    size_t room = n->room == 0 ? 64 : n->room * 2;
    struct child *more = realloc(n->children, room * sizeof(*more));
    if (more == NULL)
        return false;
    n->children = more;
    n->room = room;
    return true;
}

/* ---- requests of workers ---- */

/* The last number of the line: the pid in its own namespace. */
static int pid_inside(pid_t pid, int32_t *ret, struct silt_error *e)
{
    char path[40], *text = NULL;
    size_t len;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (silt_fd_read_file(-1, path, 16 << 10, &text, &len, e) < 0)
        return -1;
    char *line = strstr(text, "\nNSpid:");
    char *end = line != NULL ? strchr(line + 1, '\n') : NULL;
    if (end != NULL)
        *end = 0;
    char *last = end != NULL ? strrchr(line, '\t') : NULL;
    *ret = last != NULL ? (int32_t)strtol(last, NULL, 10) : 0;
    free(text);
    return *ret > 0 ? 0 : silt_fail(e, SILT_INTERNAL, "find the number of a process");
}

/* A zygote that does not answer, or answers nonsense, is ended: the context starts cold. */
static int talk(struct silt_zygote *z, const struct silt_zygote_parent_ask *ask,
                struct silt_parcel *in, struct silt_zygote_answer *ret, int *ret_pidfd,
                struct silt_error *e)
{
    struct silt_zygote_ask copy = ask->zygote;
    struct silt_parcel out = {.data = &copy, .len = sizeof(copy), .nfds = in->nfds - 1};
    struct silt_parcel back = {.data = ret, .len = sizeof(*ret)};
    struct pollfd p = {.fd = z->control, .events = POLLIN};
    for (int i = 0; i < out.nfds; i++)
        out.fds[i] = in->fds[1 + i];
    if (silt_fd_send(z->control, &out, e) < 0 || poll(&p, 1, FORK_MS) <= 0
        || silt_fd_recv(z->control, &back, e) <= 0 || back.len != sizeof(*ret)) {
        silt_parcel_close(&back);
        silt_zygote_end(z, SILT_ZYGOTE_NONE);
        return silt_fail(e, SILT_UNAVAILABLE, "the warm Python died");
    }
    if (back.nfds == 1)
        *ret_pidfd = silt_take_fd(&back.fds[0]);
    silt_parcel_close(&back);
    errno = ret->error != 0 ? ret->error : EPROTO;
    if (ret->error != 0 || ret->pid <= 0 || *ret_pidfd < 0)
        return silt_fail_errno(e, "fork a warm Python");
    return 0;
}

static int fork_child(struct parent *n, const struct silt_zygote_parent_ask *ask,
                      struct silt_parcel *in, struct silt_zygote_parent_answer *ret, int *ret_pidfd,
                      struct silt_error *e)
{
    struct silt_zygote_answer made = {0};
    struct silt_zygote *z = has_room(n) ? silt_zygote_pool_get(&n->pool, ask->digest) : NULL;
    if (z == NULL)
        return silt_fail(e, SILT_UNAVAILABLE, "no Python of this image is warm yet");
    if (talk(z, ask, in, &made, ret_pidfd, e) < 0)
        return -1;
    n->children[n->count++] = (struct child){
        .pid = made.pid, .slot = ask->slot, .handle = ask->handle, .number = ask->number};
    return pid_inside(made.pid, &ret->pid, e);
}

static void tell_end(struct parent *n, const struct silt_zygote_parent_ask *ask,
                     struct silt_zygote_parent_answer *ret)
{
    reap(n);
    for (size_t i = 0; i < n->count; i++) {
        const struct child *c = &n->children[i];
        if (c->slot != ask->slot || c->number != ask->number || c->pid != 0)
            continue;
        ret->known = 1;
        ret->status = c->status;
        ret->handle = c->handle;
        remove_child(n, i);
        return;
    }
}

/* If the worker is gone, it does not get the child. */
static void obey(struct parent *n, const struct silt_zygote_parent_ask *ask, struct silt_parcel *in)
{
    struct silt_zygote_parent_answer answer = {0};
    struct silt_parcel out = {.data = &answer, .len = sizeof(answer)};
    struct silt_error e;
    silt_auto_fd pidfd = -1;
    int done = 0;
    if (ask->type == SILT_ZYGOTE_PARENT_FORK)
        done = fork_child(n, ask, in, &answer, &pidfd, &answer.error);
    else
        tell_end(n, ask, &answer);
    answer.ok = done == 0;
    if (done == 0 && pidfd >= 0)
        out.fds[out.nfds++] = pidfd;
    if ((silt_fd_send(in->fds[0], &out, &e) < 0 || done < 0) && pidfd >= 0)
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

/* false: all workers are gone. */
static bool on_ask(struct parent *n)
{
    struct silt_zygote_parent_ask ask;
    struct silt_parcel in = {.data = &ask, .len = sizeof(ask)};
    struct silt_error e;
    int got = silt_fd_recv(n->channel, &in, &e);
    if (got > 0 && in.len == sizeof(ask) && in.nfds > 0)
        obey(n, &ask, &in);
    silt_parcel_close(&in);
    return got > 0 || (got < 0 && e.code == SILT_PROTOCOL);
}

static void serve(struct parent *n)
{
    for (;;) {
        struct pollfd fds[2 + SILT_ZYGOTE_POOL_PLACES + 1] = {{.fd = n->channel, .events = POLLIN},
                                                              {.fd = n->signals, .events = POLLIN}};
        struct signalfd_siginfo info;
        silt_zygote_pool_watch(&n->pool, fds + 2);
        (void)poll(fds, SILT_COUNT(fds), LOOK_MS);
        if (fds[1].revents != 0 && read(n->signals, &info, sizeof(info)) > 0)
            reap(n);
        silt_zygote_pool_on_ready(&n->pool, fds + 2);
        if (fds[0].revents != 0 && !on_ask(n))
            return;
    }
}

static int open_signals(struct parent *n, struct silt_error *e)
{
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return silt_fail_errno(e, "block signals");
    n->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return n->signals < 0 ? silt_fail_errno(e, "open signals") : 0;
}

int silt_zygote_parent_run(int channel, const struct silt_zygote_parent_place *place,
                           struct silt_error *e)
{
    static struct parent n;
    n = (struct parent){.channel = channel};
    if (open_signals(&n, e) < 0 || silt_zygote_pool_open(&n.pool, place, e) < 0)
        return -1;
    serve(&n);
    silt_zygote_pool_close(&n.pool);
    free(n.children);
    return 0;
}
