/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/census.h"
#include "agent/spawn/proc.h"
#include "agent/exec/spare_shell.h"
#include "agent/exec/worker.h"
#include "base/clock.h"

#include <time.h>

static struct silt_group group_of(struct silt_agent *a, struct silt_handle *h)
{
    struct silt_group g = {.handle = h};
    silt_list_each(it, &a->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->handle == h)
            g.session = s;
    }
    silt_list_each(it, &a->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        if (x->handle == h)
            g.exec = x;
    }
    return g;
}

static void visit_adopted(struct silt_agent *a,
                          void (*visit)(void *arg, const struct silt_group *g), void *arg)
{
    silt_list_each(it, &a->execs)
    {
        struct silt_exec *x = silt_outer(it, struct silt_exec, link);
        struct silt_group g = {.handle = x->handle, .exec = x};
        if (x->handle == &x->adopted_handle)
            visit(arg, &g);
    }
}

void silt_group_each(struct silt_agent *a, void (*visit)(void *arg, const struct silt_group *g),
                     void *arg)
{
    for (size_t i = 0; i < a->handles.count; i++) {
        struct silt_handle *h = &a->handles.list[i];
        struct silt_group g = group_of(a, h);
        if (h->state != SILT_HANDLE_FREE && h != a->spare->handle)
            visit(arg, &g);
    }
    visit_adopted(a, visit, arg);
}

static bool is_thread_of(pid_t id, pid_t process)
{
    return id == process || (pid_t)silt_proc_status(id, "Tgid:", 10) == process;
}

/* A program started by a worker belongs to the worker; if the worker left it behind, it is an
 * orphan and so our child. */
static bool is_work(struct silt_agent *a, pid_t id)
{
    pid_t parent;
    int64_t started_ms;
    return silt_worker_is(a, id) || !silt_proc_origin(id, &parent, &started_ms) || parent != 1;
}

bool silt_group_protects(struct silt_agent *a, const struct silt_group *g, pid_t id)
{
    if (g->handle == a->work_handle)
        return is_work(a, id);
    if (g->session != NULL)
        return id == g->session->shell.child.pid;
    return g->exec != NULL && silt_exec_is_lasting(g->exec) && is_thread_of(id, g->exec->pid);
}

/* ---- one round through all groups ---- */

struct census {
    struct silt_agent *agent;
    const struct silt_group *group; /* the one being visited */
    uint64_t id;
    pid_t pid;
    uint32_t found;
    int32_t more; /* in this group, beyond those reported one by one */
    struct silt_group *ret;
    size_t len; /* bytes not sent yet */
    char said[4096];
};

static void say(struct census *c)
{
    struct silt_say s = {.type = SILT_AGENT_FOUND, .id = c->id, .head = {c->said, c->len}};
    if (c->len > 0)
        silt_channel_say(&c->agent->channel, &s);
    c->len = 0;
}

static int64_t boot_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void describe(const struct silt_group *g, struct silt_agent_found *f)
{
    if (g->session != NULL) {
        f->in = g->session->state == SILT_SESSION_RUNNING ? SILT_FOUND_COMMAND : SILT_FOUND_SHELL;
        f->owner = g->session->id;
    } else if (g->exec != NULL) {
        f->in = SILT_FOUND_EXEC;
        f->owner = g->exec->id;
    } else {
        f->in = SILT_FOUND_LEFT;
        f->owner = g->handle->session;
    }
}

static void tell(struct census *c, pid_t id)
{
    struct silt_agent_found f = {.pid = id};
    pid_t parent;
    int64_t started_ms = 0;
    if (c->len + sizeof(f) + SILT_FOUND_TEXT_MAX + 1 > sizeof(c->said))
        say(c);
    (void)silt_proc_origin(id, &parent, &started_ms);
    f.started_ms = silt_clock_wall_ms() - boot_ms() + started_ms;
    describe(c->group, &f);
    f.text_len =
        (uint16_t)silt_proc_title(id, c->said + c->len + sizeof(f), SILT_FOUND_TEXT_MAX + 1);
    memcpy(c->said + c->len, &f, sizeof(f));
    c->len += sizeof(f) + f.text_len;
}

static void tell_more(struct census *c)
{
    struct silt_agent_found f = {.pid = -c->more};
    if (c->len + sizeof(f) > sizeof(c->said))
        say(c);
    describe(c->group, &f);
    memcpy(c->said + c->len, &f, sizeof(f));
    c->len += sizeof(f);
}

static bool visit_process(void *arg, pid_t id)
{
    struct census *c = arg;
    if ((c->pid != 0 && c->pid != id) || !silt_proc_is_process(id)
        || silt_group_protects(c->agent, c->group, id))
        return true;
    c->found++;
    if (c->ret != NULL)
        *c->ret = *c->group;
    if (c->id != 0 && c->found <= SILT_FOUND_MAX)
        tell(c, id);
    else
        c->more++;
    return c->pid == 0;
}

static void visit_group(void *arg, const struct silt_group *g)
{
    struct census *c = arg;
    c->group = g;
    c->more = 0;
    (void)silt_handle_visit(g->handle, visit_process, c);
    if (c->id != 0 && c->more > 0)
        tell_more(c);
}

uint32_t silt_census_take(struct silt_agent *a, uint64_t id, pid_t pid)
{
    struct census c = {.agent = a, .id = id, .pid = pid};
    silt_group_each(a, visit_group, &c);
    say(&c);
    return c.found;
}

bool silt_census_find(struct silt_agent *a, pid_t pid, struct silt_group *ret)
{
    struct census c = {.agent = a, .pid = pid, .ret = ret};
    silt_group_each(a, visit_group, &c);
    return c.found > 0;
}
