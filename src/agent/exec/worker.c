/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/worker.h"
#include "agent/spawn/start_frame.h"
#include "base/own.h"
#include "worker/task.h"

#include <signal.h>
#include <stdlib.h>

enum { WORKERS_MAX = 2 * (SILT_WORKERS_MAX + SILT_WORKER_WATCHES_MAX) }; /* some may be ending */

struct worker {
    struct silt_link link;
    struct silt_agent *agent; /* borrowed */
    uint64_t id;
    int sock; /* owned until it runs */
    char user[SILT_USER_TEXT_MAX + 1];
    struct silt_handle_wait wait;
    struct silt_launch launch;
    struct silt_grave grave;
};

static void free_worker(struct silt_grave *g)
{
    struct worker *w = silt_outer(g, struct worker, grave);
    silt_close_fd(&w->sock);
    free(w);
}

static void leave(struct worker *w)
{
    silt_handle_stop_waiting(&w->wait);
    silt_list_remove(&w->link);
    silt_loop_bury(&w->agent->loop, &w->grave);
}

static void fail(struct worker *w, const struct silt_error *e)
{
    silt_channel_say_failed(&w->agent->channel, w->id, e);
    leave(w);
}

static void on_started(struct silt_launch *l)
{
    silt_close_fd(&silt_outer(l, struct worker, launch)->sock);
}

static void on_failed(struct silt_launch *l, bool no_dir, const struct silt_error *e)
{
    (void)no_dir;
    fail(silt_outer(l, struct worker, launch), e);
}

static void on_exited(struct silt_launch *l, int status)
{
    (void)status; /* siltd notices the end on the pair */
    leave(silt_outer(l, struct worker, launch));
}

static void go(struct worker *w)
{
    struct silt_agent *a = w->agent;
    struct silt_error e;
    struct silt_spawn s = {
        .run = silt_worker_serve,
        .in = w->sock,
        .out = -1,
        .err = -1,
        .extra = SILT_SPAWN_NO_EXTRA,
        .user = w->user[0] != 0 ? w->user : NULL,
        .dirs = {"/"},
        .handle = a->work_handle,
        .joins = &a->joins,
    };
    w->launch = (struct silt_launch){
        .loop = &a->loop,
        .children = &a->children,
        .on_started = on_started,
        .on_failed = on_failed,
        .on_exited = on_exited,
    };
    if (silt_launch_start(&w->launch, &s, &e) < 0)
        fail(w, &e);
}

static void on_handle(struct silt_handle_wait *wait, struct silt_handle *h)
{
    struct worker *w = silt_outer(wait, struct worker, wait);
    if (w->agent->work_handle == NULL)
        w->agent->work_handle = h;
    else
        silt_handle_leave(&w->agent->handles, h, 0); /* another one was faster */
    go(w);
}

static void on_no_handle(struct silt_handle_wait *wait)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_LIMIT, "%d commands run in this sandbox already", SILT_HANDLES_MAX);
    fail(silt_outer(wait, struct worker, wait), &e);
}

static struct worker *find(struct silt_agent *a, uint64_t id, size_t *ret_count)
{
    struct worker *found = NULL;
    *ret_count = 0;
    silt_list_each(it, &a->workers)
    {
        struct worker *w = silt_outer(it, struct worker, link);
        ++*ret_count;
        if (w->id == id)
            found = w;
    }
    return found;
}

static struct worker *new_worker(struct silt_agent *a, uint64_t id, int sock)
{
    struct worker *w = calloc(1, sizeof(*w));
    if (w == NULL)
        abort();
    w->agent = a;
    w->id = id;
    w->sock = sock;
    w->launch.report.fd = -1;
    w->wait.on_handle = on_handle;
    w->wait.on_none = on_no_handle;
    w->grave.free = free_worker;
    silt_list_append(&a->workers, &w->link);
    return w;
}

void silt_worker_start(struct silt_agent *a, uint64_t id, silt_slice user, int sock)
{
    size_t count;
    struct silt_error e;
    struct worker *w = find(a, id, &count);
    if (w != NULL || count >= WORKERS_MAX) {
        (void)silt_fail(&e, SILT_LIMIT, "%zu workers in this sandbox already", count);
        silt_channel_say_failed(&a->channel, id, &e);
        silt_close_fd(&sock);
        return;
    }
    w = new_worker(a, id, sock);
    /* a name that is too long does not exist */
    (void)silt_slice_to_cstr(user, w->user, sizeof(w->user), &e);
    if (a->work_handle == NULL) {
        a->work_handle = silt_handles_want(&a->handles, &w->wait);
        if (a->work_handle == NULL)
            return;
    }
    go(w);
}

void silt_worker_kill(struct silt_agent *a, uint64_t id)
{
    size_t count;
    struct worker *w = find(a, id, &count);
    if (w == NULL)
        return;
    if (w->launch.child.pid > 0)
        (void)kill(w->launch.child.pid, SIGKILL);
    else
        leave(w);
}

bool silt_worker_is(struct silt_agent *a, pid_t pid)
{
    silt_list_each(it, &a->workers)
    {
        if (silt_outer(it, struct worker, link)->launch.child.pid == pid)
            return true;
    }
    return false;
}
