/* SPDX-License-Identifier: Apache-2.0 */
/* lost_exits: opens the logs of processes that a previous siltd started, and looks in them for
 * exits that were never reported. */
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/process/log_follower.h"

#include <stdlib.h>

struct silt_log_file *silt_log_file_new(struct silt_registry *r, int fd)
{
    struct silt_log_file *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    *f = (struct silt_log_file){.registry = r, .fd = fd, .users = 1};
    r->open_logs++;
    return f;
}

struct silt_log_file *silt_log_file_share(struct silt_log_file *f)
{
    f->users++;
    return f;
}

void silt_log_file_leave(struct silt_log_file *f)
{
    if (f == NULL || --f->users > 0)
        return;
    f->registry->open_logs--;
    silt_close_fd(&f->fd);
    free(f);
}

/* The exit as recorded in the log. */

struct look {
    struct silt_job job;
    struct silt_process *process; /* borrowed, busy */
    struct silt_log_file *log;
    struct silt_log_head head;
    enum silt_log_reader_found found;
};

static void run_look(struct silt_job *j)
{
    struct look *l = silt_outer(j, struct look, job);
    l->found = silt_log_reader_look(l->log->fd, true, &l->head);
}

static void be_lost(struct silt_process *p)
{
    bool runs = p->sandbox->row.running;
    silt_process_on_lost(p, runs ? "daemon_restart" : p->sandbox->row.death.cause);
}

static void on_looked(struct silt_job *j)
{
    struct look *l = silt_outer(j, struct look, job);
    struct silt_process *p = l->process;
    struct silt_sandbox *s = p->sandbox;
    p->busy--;
    if (!p->settling) {
        silt_process_unuse(p);
    } else if (l->found == SILT_LOG_FOUND && l->head.ended == 1) {
        int64_t now = silt_clock_wall_ms(), then = l->head.ended_ms;
        silt_process_on_end(p, &l->head.end, then >= p->row.started_ms && then <= now ? then : now);
    } else {
        be_lost(p);
    }
    silt_sandbox_release(s);
    silt_log_file_leave(l->log);
    free(l);
}

static void look_for_the_end(struct silt_process *p)
{
    if (p->log_state != SILT_PROCESS_LOG_OPEN) {
        be_lost(p);
        return;
    }
    struct look *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct look){.job = {.run = run_look, .done = on_looked},
                       .process = p,
                       .log = silt_log_file_share(p->log)};
    p->busy++;
    silt_sandbox_hold(p->sandbox);
    silt_worker_submit(p->sandbox->registry->worker, &l->job);
}

void silt_process_settle_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (silt_process_is_over(p) || p->exec != NULL || p->settling)
            continue;
        p->settling = true;
        if (p->log_state == SILT_PROCESS_LOG_UNKNOWN)
            silt_process_open_log(p);
        else if (p->log_state != SILT_PROCESS_LOG_OPENING)
            look_for_the_end(p);
    }
}

/* Opening. */

static void on_opened(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_process *p = context;
    struct silt_sandbox *s = p->sandbox;
    const struct silt_error *e = a->ok ? NULL : &a->body.error;
    p->busy--;
    if (nfds > 0)
        p->log = silt_log_file_new(s->registry, fds[0]);
    p->log_state = nfds > 0                                 ? SILT_PROCESS_LOG_OPEN
                   : e != NULL && e->code != SILT_NOT_FOUND ? SILT_PROCESS_LOG_UNKNOWN
                                                            : SILT_PROCESS_LOG_ABSENT;
    silt_log_follower_log_is_here(p, p->log_state == SILT_PROCESS_LOG_UNKNOWN ? e : NULL);
    if (p->settling && e != NULL && e->code == SILT_INTERRUPTED)
        silt_process_open_log(p); /* silt-priv was restarted: ask the new one */
    else if (p->settling)
        look_for_the_end(p);
    silt_process_unuse(p);
    silt_sandbox_release(s);
}

void silt_process_open_log(struct silt_process *p)
{
    struct silt_priv_request q = {.op = SILT_PRIV_LOG, .slot = p->row.slot};
    q.body.log.number = p->row.number;
    if (p->log_state != SILT_PROCESS_LOG_UNKNOWN || p->sandbox->phase == SILT_SANDBOX_IS_GONE)
        return;
    p->log_state = SILT_PROCESS_LOG_OPENING;
    p->busy++;
    silt_sandbox_hold(p->sandbox);
    silt_priv_ask(p->sandbox->registry->priv, &q, NULL, 0, on_opened, p);
}
