/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/child.h"
#include "base/own.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REAPED_PER_TURN = 256 };

static void tell(struct silt_children *all, pid_t pid, int status)
{
    silt_list_each(it, &all->list)
    {
        struct silt_child *c = silt_outer(it, struct silt_child, link);
        if (c->pid != pid)
            continue;
        silt_child_forget(c);
        c->on_exited(c, status);
        return;
    }
}

static void on_signal(struct silt_watch *w, uint32_t events)
{
    struct silt_children *all = silt_outer(w, struct silt_children, watch);
    struct signalfd_siginfo info;
    int reaped = 0;
    (void)events;
    if (read(w->fd, &info, sizeof(info)) < 0)
        return;
    for (; reaped < REAPED_PER_TURN; reaped++) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid <= 0)
            break;
        tell(all, pid, status);
    }
    if (reaped == REAPED_PER_TURN)
        (void)raise(SIGCHLD); /* the rest is reaped in another turn */
    if (reaped > 0)
        all->on_reaped(all);
}

int silt_children_open(struct silt_children *all, struct silt_loop *loop, struct silt_error *e)
{
    sigset_t mask;
    silt_list_init(&all->list);
    all->loop = loop;
    (void)sigfillset(&mask);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return silt_fail_errno(e, "block signals");
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    int fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return silt_fail_errno(e, "create signalfd");
    all->watch = (struct silt_watch){.fd = fd, .on_ready = on_signal};
    silt_loop_watch(loop, &all->watch, EPOLLIN);
    return 0;
}

bool silt_child_is_known(const struct silt_children *all, pid_t pid)
{
    silt_list_each(it,
                   &all->list) if (silt_outer(it, struct silt_child, link)->pid == pid) return true;
    return false;
}

void silt_child_add(struct silt_children *all, struct silt_child *c)
{
    silt_list_init(&c->link);
    silt_list_append(&all->list, &c->link);
}

void silt_child_forget(struct silt_child *c)
{
    if (c->pid == 0)
        return;
    silt_list_remove(&c->link);
    c->pid = 0;
}
