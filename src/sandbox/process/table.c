/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/table.h"
#include "base/log.h"
#include "sandbox/process/log_follower.h"

#include <assert.h>
#include <stdlib.h>

enum {
    COMMANDS_MAX = 2 << 20, /* bytes of commands kept per sandbox */
    CLEANUP_MS = 60000,
    TERMINAL_MS = 1000, /* between checks whether a terminal's output still has readers */
};

static void free_process(struct silt_grave *g)
{
    struct silt_process *p = silt_outer(g, struct silt_process, grave);
    silt_log_file_leave(p->log);
    silt_process_row_fini(&p->row);
    free(p);
}

static bool is_used(const struct silt_process *p)
{
    return !silt_list_empty(&p->follows) || !silt_list_empty(&p->watches) || p->busy > 0
           || p->exec != NULL;
}

void silt_process_unuse(struct silt_process *p)
{
    bool read = !silt_list_empty(&p->follows) || p->busy > 0;
    if (silt_process_is_over(p) && !read && p->log_state == SILT_PROCESS_LOG_OPEN) {
        silt_log_file_leave(p->log);
        p->log = NULL;
        p->log_state = SILT_PROCESS_LOG_UNKNOWN;
    }
    if (p->listed || is_used(p) || p->grave.free != NULL)
        return;
    p->grave.free = free_process;
    silt_loop_bury(p->sandbox->registry->loop, &p->grave);
}

void silt_process_hold(struct silt_process *p)
{
    p->busy++;
    silt_sandbox_hold(p->sandbox);
}

void silt_process_release(struct silt_process *p)
{
    struct silt_sandbox *s = p->sandbox;
    p->busy--;
    silt_process_unuse(p);
    silt_sandbox_release(s);
}

int silt_process_table_store(struct silt_process *p, struct silt_error *e)
{
    if (!p->listed || silt_store_put_process(p->sandbox->registry->store, &p->row, e) == 0)
        return 0;
    silt_log(SILT_LOG_ERROR, "store.put", "process=%s error=%s", p->row.id, e->text);
    p->sandbox->unsaved = true;
    return -1;
}

void silt_process_table_save(struct silt_process *p)
{
    struct silt_error e;
    (void)silt_process_table_store(p, &e);
}

void silt_process_table_save_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
        silt_process_table_save(silt_outer(it, struct silt_process, link));
}

void silt_process_table_unlist(struct silt_process *p)
{
    silt_loop_cancel(p->sandbox->registry->loop, &p->cleanup);
    silt_list_remove(&p->link);
    p->sandbox->process_count--;
    p->listed = false;
}

static void on_unlogged(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    (void)context; /* the rest is removed with the sandbox */
    (void)a;
    (void)fds;
    (void)nfds;
}

void silt_process_table_remove_log(struct silt_process *p)
{
    struct silt_priv_request q = {.op = SILT_PRIV_UNLOG, .slot = p->sandbox->row.slot};
    q.body.log.number = p->row.number;
    silt_priv_ask(p->sandbox->registry->priv, &q, NULL, 0, on_unlogged, NULL);
}

void silt_process_table_remove(struct silt_process *p)
{
    struct silt_error e;
    if (silt_store_remove_process(p->sandbox->registry->store, &p->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "process=%s error=%s", p->row.id, e.text);
    silt_process_table_unlist(p);
    silt_process_table_remove_log(p);
    silt_process_unuse(p);
}

void silt_process_remove(struct silt_process *p)
{
    assert(silt_process_is_over(p) && p->listed);
    silt_process_table_remove(p);
}

static void on_cleanup(struct silt_timer *t)
{
    struct silt_process *p = silt_outer(t, struct silt_process, cleanup);
    if (!is_used(p))
        silt_process_table_remove(p);
    else
        silt_loop_after(p->sandbox->registry->loop, t,
                        silt_process_is_terminal(p) ? TERMINAL_MS : CLEANUP_MS);
}

void silt_process_table_clean_up_later(struct silt_process *p)
{
    bool terminal = silt_process_is_terminal(p);
    if ((p->row.auto_cleanup || terminal) && p->listed)
        silt_loop_after(p->sandbox->registry->loop, &p->cleanup, terminal ? 0 : CLEANUP_MS);
}

struct silt_process *silt_process_table_new(struct silt_sandbox *s)
{
    struct silt_process *p = calloc(1, sizeof(*p));
    if (p == NULL)
        abort();
    p->sandbox = s;
    p->cleanup.on_time = on_cleanup;
    silt_list_init(&p->follows);
    silt_list_init(&p->watches);
    silt_list_append(&s->processes, &p->link);
    s->process_count++;
    p->listed = true;
    return p;
}

struct silt_process *silt_process_find(struct silt_sandbox *s, silt_slice id)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (!silt_process_is_terminal(p) && silt_slice_eq(silt_slice_of(p->row.id), id))
            return p;
    }
    return NULL;
}

void silt_process_table_load(struct silt_sandbox *s, struct silt_process_row *row)
{
    struct silt_process *p = silt_process_table_new(s);
    p->row = *row;
    if (silt_process_is_over(p))
        silt_process_table_clean_up_later(p);
}

void silt_process_table_forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        p->exec = NULL;
        silt_process_table_unlist(p);
        if (!is_used(p)) /* otherwise its last user does */
            free_process(&p->grave);
    }
}

/* Makes room for one more: removes the oldest ended processes that have no readers. */

uint64_t silt_process_table_log_bytes(const struct silt_process *p)
{
    struct silt_log_head h;
    bool known = p->log != NULL && silt_log_reader_look(p->log->fd, false, &h) == SILT_LOG_FOUND;
    return known ? silt_log_reader_size(&h) : p->row.log_bytes;
}

static bool is_full(struct silt_sandbox *s)
{
    uint64_t logs = 0, commands = 0;
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        logs += silt_process_is_over(p) ? p->row.log_bytes : silt_process_table_log_bytes(p);
        commands += p->row.command != NULL ? strlen(p->row.command) : 0;
    }
    return s->process_count >= SILT_LOGS_MAX || logs > SILT_LOGS_BYTES || commands > COMMANDS_MAX;
}

static struct silt_process *oldest_unused(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (silt_process_is_over(p) && !is_used(p))
            return p;
    }
    return NULL;
}

int silt_process_table_make_room(struct silt_sandbox *s, struct silt_error *e)
{
    while (is_full(s)) {
        struct silt_process *p = oldest_unused(s);
        if (p == NULL)
            return silt_fail(e, SILT_LIMIT,
                             "the processes that run in this sandbox are %u (at most %d), or their "
                             "logs are more "
                             "than %llu MiB",
                             s->process_count, SILT_LOGS_MAX, SILT_LOGS_BYTES >> 20);
        silt_process_table_remove(p);
    }
    return 0;
}

/* Watches. */

void silt_process_watch(struct silt_process *p, struct silt_process_watch *w)
{
    silt_list_init(&w->link);
    silt_list_append(&p->watches, &w->link);
}

void silt_process_unwatch(struct silt_process_watch *w)
{
    silt_list_remove(&w->link);
}

void silt_process_table_tell(struct silt_process *p, enum silt_process_event what,
                             const struct silt_error *e)
{
    struct silt_link all;
    silt_list_init(&all);
    silt_list_each(it, &p->watches)
    {
        silt_list_remove(it);
        silt_list_append(&all, it);
    }
    p->busy++;
    while (!silt_list_empty(&all)) {
        struct silt_process_watch *w = silt_list_first(&all, struct silt_process_watch, link);
        silt_list_remove(&w->link);
        w->on_event(w, p, what, e);
    }
    p->busy--;
}
