/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn/handle.h"
#include "agent/spawn/proc.h"
#include "agent/spawn/test_holes.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

enum { V1_TASKS = 0, V1_FREEZER = 1, V2_DIRECTORY = 0, V2_PROCS = 1, V2_KILL = 2 };
enum { MORE = 4 };       /* handles requested at a time */
enum { MOVE_MS = 1000 }; /* for moving a process; it takes one */

void silt_handles_init(struct silt_handles *all, struct silt_loop *loop, int mode)
{
    all->loop = loop;
    all->mode = mode;
    all->count = 0;
    silt_list_init(&all->waits);
}

static size_t fds_each(const struct silt_handles *all)
{
    return all->mode == 1 ? SILT_HANDLE_FDS_V1 : SILT_HANDLE_FDS_V2;
}

/* When no more handles will come, one in which earlier commands left daemons is reused: killing its
 * command then kills those, too, but a guest that leaves many behind still works. */
static struct silt_handle *find_usable(struct silt_handles *all)
{
    struct silt_handle *empty = NULL, *left = NULL;
    for (size_t i = 0; i < all->count && empty == NULL; i++) {
        struct silt_handle *h = &all->list[i];
        if (h->state == SILT_HANDLE_FREE)
            return h;
        if (h->state != SILT_HANDLE_LEFT || h->swept)
            continue;
        left = h;
        if (silt_handle_is_empty(h))
            empty = h;
    }
    return empty != NULL || all->count < SILT_HANDLES_MAX ? empty : left;
}

static void serve_waits(struct silt_handles *all)
{
    all->full = false;
    while (!silt_list_empty(&all->waits)) {
        struct silt_handle_wait *w = silt_outer(all->waits.next, struct silt_handle_wait, link);
        struct silt_handle *h = find_usable(all);
        if (h == NULL)
            return;
        silt_handle_stop_waiting(w);
        h->state = SILT_HANDLE_USED;
        w->on_handle(w, h);
    }
}

static void ask_for_more(struct silt_handles *all)
{
    if (all->asked || all->count >= SILT_HANDLES_MAX)
        return;
    all->asked = true;
    size_t room = SILT_HANDLES_MAX - all->count;
    all->on_need(all, (unsigned)(room < MORE ? room : MORE));
}

void silt_handles_add(struct silt_handles *all, const int *fds, size_t count)
{
    size_t each = fds_each(all);
    all->asked = false;
    size_t at = 0;
    for (; at + each <= count && all->count < SILT_HANDLES_MAX; at += each) {
        struct silt_handle *h = &all->list[all->count++];
        *h = (struct silt_handle){.state = SILT_HANDLE_FREE, .mode = all->mode};
        memcpy(h->fds, fds + at, each * sizeof(int));
    }
    for (; at < count; at++)
        (void)close(fds[at]);
    serve_waits(all);
    if (count > 0 && !silt_list_empty(&all->waits)) /* more waits than handles received */
        ask_for_more(all);
}

static void on_wait_over(struct silt_timer *t)
{
    struct silt_handle_wait *w = silt_outer(t, struct silt_handle_wait, timer);
    struct silt_handles *all = w->all;
    silt_handle_stop_waiting(w);
    all->asked = false; /* the response will not come any more */
    all->full = all->count >= SILT_HANDLES_MAX;
    w->on_none(w);
}

struct silt_handle *silt_handles_try(struct silt_handles *all)
{
    struct silt_handle *h = silt_list_empty(&all->waits) ? find_usable(all) : NULL;
    if (h != NULL)
        h->state = SILT_HANDLE_USED;
    return h;
}

struct silt_handle *silt_handles_want(struct silt_handles *all, struct silt_handle_wait *w)
{
    struct silt_handle *h = silt_handles_try(all);
    if (h != NULL)
        return h;
    w->all = all;
    w->timer.on_time = on_wait_over;
    silt_list_init(&w->link);
    silt_list_append(&all->waits, &w->link);
    silt_loop_after(all->loop, &w->timer, all->full ? 0 : SILT_HANDLE_WAIT_MS);
    all->on_wait(all);
    ask_for_more(all);
    return NULL;
}

void silt_handle_stop_waiting(struct silt_handle_wait *w)
{
    if (w->all == NULL)
        return;
    silt_list_remove(&w->link);
    silt_loop_cancel(w->all->loop, &w->timer);
    w->all = NULL;
}

void silt_handles_ask_again(struct silt_handles *all)
{
    all->asked = false;
    if (!silt_list_empty(&all->waits))
        ask_for_more(all);
}

void silt_handles_poke(struct silt_handles *all)
{
    serve_waits(all);
}

void silt_handle_leave(struct silt_handles *all, struct silt_handle *h, uint64_t session)
{
    h->state = SILT_HANDLE_LEFT;
    h->session = session;
    serve_waits(all);
}

/* The kernel caches the list of a v1 `tasks` file for a second per open file (cgroup_pidlist): only
 * a newly opened descriptor is up to date. */
static int open_list(const struct silt_handle *h)
{
    char path[40];
    if (h->mode != 1)
        return fcntl(h->fds[V2_PROCS], F_DUPFD_CLOEXEC, 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", h->fds[V1_TASKS]);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int silt_handle_visit(const struct silt_handle *h, bool (*visit)(void *arg, pid_t id), void *arg)
{
    char text[1024];
    off_t at = 0;
    pid_t id = 0;
    silt_auto_fd fd = open_list(h);
    if (fd < 0)
        return -1;
    for (;;) {
        ssize_t n = pread(fd, text, sizeof(text), at);
        if (n <= 0)
            return (int)n;
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                id = id * 10 + (text[i] - '0');
                continue;
            }
            /* 0: a process outside our namespace, which cannot be. */
            if (id > 0 && !visit(arg, id))
                return 0;
            id = 0;
        }
    }
}

static bool visit_one(void *arg, pid_t id)
{
    (void)id;
    *(bool *)arg = true;
    return false;
}

bool silt_handle_is_empty(const struct silt_handle *h)
{
    bool found = false;
    return silt_handle_visit(h, visit_one, &found) == 0 && !found;
}

struct restless {
    unsigned looks;
    bool found;
};

static bool visit_restless(void *arg, pid_t id)
{
    enum { LOOKS_MAX = 64 };
    struct restless *r = arg;
    char activity = silt_proc_activity(id);
    r->found = activity == 'R' || activity == 'D';
    return !r->found && ++r->looks < LOOKS_MAX;
}

bool silt_handle_is_restless(const struct silt_handle *h)
{
    struct restless r = {0};
    (void)silt_handle_visit(h, visit_restless, &r);
    return r.found;
}

static bool visit_signal(void *arg, pid_t id)
{
    if (silt_proc_is_process(id) && !silt_agent_spares(id))
        (void)kill(id, *(int *)arg);
    return true;
}

static bool visit_kill(void *arg, pid_t id)
{
    (void)arg;
    if (silt_agent_spares(id))
        return true;
    (void)kill(id, SIGKILL); /* any thread will do; an ended leader is not listed */
    return true;
}

void silt_handle_signal(struct silt_handle *h, int signal)
{
    if (signal == SIGKILL && h->mode == 2 && !silt_without("kill_tree")
        && write(h->fds[V2_KILL], "1", 1) == 1) {
        h->killed = true;
        return;
    }
    (void)silt_handle_visit(h, signal == SIGKILL ? visit_kill : visit_signal, &signal);
}

void silt_handle_freeze(const struct silt_handle *h, bool frozen)
{
    const char *text = frozen ? "FROZEN" : "THAWED";
    if (h->mode != 1)
        return;
    ssize_t n = pwrite(h->fds[V1_FREEZER], text, strlen(text), 0);
    (void)n; /* the next list shows the result */
}

bool silt_handle_is_frozen(const struct silt_handle *h)
{
    char text[16] = "";
    if (h->mode != 1)
        return true;
    ssize_t n = pread(h->fds[V1_FREEZER], text, sizeof(text) - 1, 0);
    return n >= 6 && memcmp(text, "FROZEN", 6) == 0;
}

static int put(int fd, pid_t pid)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%d", (int)pid);
    return write(fd, text, (size_t)len) == len ? 0 : -1;
}

int silt_handle_enter(const struct silt_handle *h)
{
    if (h->mode == 1)
        return put(h->fds[V1_TASKS], 0);
    silt_auto_fd fd = openat(h->fds[V2_DIRECTORY], "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return fd >= 0 ? put(fd, 0) : -1;
}

/* In a child: opens the file by root's right to it, but as `uid`. */
static int put_as(int tasks, pid_t pid, uid_t uid)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", tasks);
    if (setresuid((uid_t)-1, uid, (uid_t)-1) < 0)
        return -1;
    (void)setfsuid(0);
    silt_auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 ? put(fd, pid) : -1;
}

/* v1: the file takes the processes of the user who opened it. The guest's root can stop the child,
 * so it has a deadline. */
static int put_by_child(int tasks, pid_t pid, uid_t uid)
{
    int done[2];
    char good = 0;
    if (pipe2(done, O_CLOEXEC) < 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        good = put_as(tasks, pid, uid) == 0;
        _exit(write(done[1], &good, 1) != 1);
    }
    (void)close(done[1]);
    struct pollfd p = {.fd = done[0], .events = POLLIN};
    bool told = child > 0 && poll(&p, 1, MOVE_MS) == 1 && read(done[0], &good, 1) == 1;
    (void)close(done[0]);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    errno = EACCES;
    return told && good ? 0 : -1;
}

int silt_handle_move(const struct silt_handle *h, pid_t pid)
{
    if (h->mode == 1) {
        if (put(h->fds[V1_TASKS], pid) == 0)
            return 0;
        return errno == EACCES
                   ? put_by_child(h->fds[V1_TASKS], pid, (uid_t)silt_proc_status(pid, "Uid:", 10))
                   : -1;
    }
    silt_auto_fd fd = openat(h->fds[V2_DIRECTORY], "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return fd >= 0 ? put(fd, pid) : -1;
}
