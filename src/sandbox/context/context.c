/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/context/run_queue.h"
#include "sandbox/context/internal.h"
#include "sandbox/core/image.h"
#include "sandbox/context/prestarted.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    INTERRUPT_AGAIN_MS = 700, /* handling the first interrupt takes a while */
};

/* ---- saved state ---- */

static int store(struct silt_context *c, struct silt_error *e)
{
    if (silt_store_put_context(c->sandbox->registry->store, &c->row, e) == 0)
        return 0;
    silt_log(SILT_LOG_ERROR, "store.put", "context=%s error=%s", c->row.id, e->text);
    return -1;
}

void silt_context_save(struct silt_context *c)
{
    struct silt_error e;
    (void)store(c, &e);
}

int silt_context_keep(struct silt_context *c, struct silt_error *e)
{
    int fds[SILT_KERNEL_FDS];
    silt_kernel_fds(&c->kernel, fds);
    silt_sandbox_tell_super(
        c->sandbox, (struct silt_super_note){.type = SILT_SUPER_KEEP, .number = c->row.number}, fds,
        SILT_KERNEL_FDS);
    return store(c, e);
}

void silt_context_unkeep(struct silt_context *c)
{
    struct silt_error e;
    silt_sandbox_tell_super(
        c->sandbox, (struct silt_super_note){.type = SILT_SUPER_DROP, .number = c->row.number},
        NULL, 0);
    if (silt_store_remove_context(c->sandbox->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "context=%s error=%s", c->row.id, e.text);
}

/* ---- states ---- */

static bool listens(enum silt_context_state s)
{
    return s == SILT_CONTEXT_STARTING || s == SILT_CONTEXT_RUNNING || s == SILT_CONTEXT_UNSURE
           || s == SILT_CONTEXT_SETTLING;
}

/* The only place that assigns it. A run of a previous siltd keeps the sandbox awake like any
 * other. */
void silt_context_enter(struct silt_context *c, enum silt_context_state next)
{
    bool was_unsure = c->state == SILT_CONTEXT_UNSURE;
    c->sandbox->registry->contexts_starting -= c->state == SILT_CONTEXT_STARTING;
    c->sandbox->registry->contexts_starting += next == SILT_CONTEXT_STARTING;
    c->state = next;
    if (!was_unsure && next == SILT_CONTEXT_UNSURE)
        silt_sandbox_hold(c->sandbox);
    else if (was_unsure && next != SILT_CONTEXT_UNSURE)
        silt_sandbox_release(c->sandbox);
    silt_loop_cancel(c->sandbox->registry->loop, &c->deadline);
    silt_kernel_listen(&c->kernel, listens(next));
}

void silt_context_tell(struct silt_link *waits, struct silt_context *c, const struct silt_error *e)
{
    while (!silt_list_empty(waits)) {
        struct silt_context_wait *w = silt_list_first(waits, struct silt_context_wait, link);
        silt_list_remove(&w->link);
        w->on_done(w, c, e);
    }
}

static void free_context(struct silt_grave *g)
{
    struct silt_context *c = silt_outer(g, struct silt_context, grave);
    silt_context_row_fini(&c->row);
    free(c);
}

/* Nothing of it is left: unlinks it and calls those waiting for that. */
void silt_context_be_gone(struct silt_context *c)
{
    silt_zygote_fork_forget(&c->warm);
    silt_list_remove(&c->link);
    c->sandbox->registry->contexts_starting -=
        c->state == SILT_CONTEXT_STARTING; /* it never started */
    c->sandbox->context_count--;
    silt_loop_bury(c->sandbox->registry->loop, &c->grave);
    silt_context_tell(&c->enders, NULL, NULL);
}

/* ---- end ---- */

void silt_context_set_death(struct silt_context *c, const char *cause, const char *message)
{
    if (c->death.cause[0] != 0)
        return; /* the first reason wins */
    c->death.at_ms = silt_clock_wall_ms();
    (void)snprintf(c->death.cause, sizeof(c->death.cause), "%s", cause);
    (void)snprintf(c->death.message, sizeof(c->death.message), "%.*s",
                   (int)sizeof(c->death.message) - 1, message);
}

/* The error for those who waited for a deleted context, however its process ended. */
static void tell_deleted(const struct silt_context *c, struct silt_error *e)
{
    if (strcmp(c->death.cause, "deleted") == 0)
        (void)silt_fail(e, SILT_CONFLICT, "Context %s was deleted", c->row.id);
}

void silt_context_close_kernel(struct silt_context *c)
{
    silt_parse_thread_leave(&c->listener);
    silt_kernel_close(&c->kernel);
}

/* Its process is gone or never started; waiters get `why`. */
void silt_context_die(struct silt_context *c, const struct silt_error *why)
{
    struct silt_error told = *why, *e = &told;
    tell_deleted(c, e);
    bool born = c->state != SILT_CONTEXT_STARTING;
    if (!born)
        silt_prestarted_end_all(c->sandbox); /* memory may have been short */
    silt_context_unkeep(c);
    silt_loop_cancel(c->sandbox->registry->loop, &c->deadline);
    silt_code_run_end_all(c, e); /* while its state is still unchanged */
    silt_context_enter(c, SILT_CONTEXT_DEAD);
    silt_context_close_kernel(c);
    if (c->restarting && c->sandbox->state == SILT_SANDBOX_RUNNING) {
        silt_context_start_again(c);
        return;
    }
    silt_context_tell(&c->starters, NULL, e);
    if (c->removing || (!born && !c->known))
        silt_context_be_gone(c);
}

void silt_context_kill(struct silt_context *c, const char *cause, const char *message)
{
    silt_context_set_death(c, cause, message);
    silt_context_end_process(c);
}

/* Repeats the signal: an interpreter can lose one that arrives just before it blocks, and an idle
 * one ignores it. */
bool silt_context_interrupt(struct silt_context *c)
{
    int64_t now_ms = c->sandbox->registry->loop->now_ms;
    if (c->state != SILT_CONTEXT_RUNNING && c->state != SILT_CONTEXT_UNSURE)
        return false;
    if (c->exec != NULL)
        silt_exec_interrupt(c->exec);
    if (!c->interrupted)
        c->patience_ms = now_ms + SILT_INTERRUPT_GRACE_MS;
    /* Repeated interrupts must not postpone its end. */
    if (!c->interrupted || c->deadline.place == 0)
        silt_loop_after(c->sandbox->registry->loop, &c->deadline, INTERRUPT_AGAIN_MS);
    c->interrupted = true;
    silt_kernel_resume(&c->kernel); /* we must read that it stops */
    return true;
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_context *c = silt_outer(t, struct silt_context, deadline);
    if (c->silent)
        silt_context_kill(c, "protocol", "the interpreter's control descriptor was closed");
    else if (c->state == SILT_CONTEXT_STARTING)
        silt_context_kill(c, "timeout", "the interpreter did not start in time");
    else if (c->state == SILT_CONTEXT_SETTLING)
        silt_context_be_ready(c); /* it is stuck: the next run may be interrupted, too */
    else
        silt_code_run_on_time(c);
}

/* ---- creation and removal ---- */

static void make_uuid(char out[SILT_CONTEXT_ID_SIZE])
{
    uint8_t b[16];
    if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
        abort();
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    (void)snprintf(out, SILT_CONTEXT_ID_SIZE,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
}

struct silt_context *silt_context_add(struct silt_sandbox *s)
{
    struct silt_context *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->sandbox = s;
    c->grave.free = free_context;
    c->death.exit_code = -1;
    c->deadline = (struct silt_timer){.on_time = on_deadline};
    c->kernel = (struct silt_kernel){.loop = s->registry->loop,
                                     .unsent_sums = {&s->unsent_bytes, &s->registry->unsent_bytes},
                                     .lane = {.all = &s->registry->lanes, .user = &s->lanes}};
    silt_context_hear(c);
    silt_context_follow_process(c);
    silt_kernel_init(&c->kernel);
    silt_list_init(&c->cells);
    silt_list_init(&c->starters);
    silt_list_init(&c->enders);
    silt_list_append(&s->contexts, &c->link);
    s->context_count++;
    s->registry->contexts_starting++; /* it is STARTING from here on */
    return c;
}

/* Dead contexts are kept for later requests, as long as there is room. */
static bool make_room(struct silt_sandbox *s)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (s->context_count < SILT_CONTEXTS_MAX)
            break;
        if (c->state == SILT_CONTEXT_DEAD)
            silt_context_be_gone(c);
    }
    return s->context_count < SILT_CONTEXTS_MAX;
}

int silt_context_new(struct silt_sandbox *s, const struct silt_context_options *o,
                     struct silt_context_wait *w, struct silt_context **ret, struct silt_error *e)
{
    if (!make_room(s))
        return silt_fail(e, SILT_LIMIT, "this sandbox has %d contexts already; delete one",
                         SILT_CONTEXTS_MAX);
    if (silt_store_admit(s->registry->store, e) < 0)
        return -1;
    struct silt_context *c = silt_context_add(s);
    silt_slice cwd = o->cwd.len > 0 ? o->cwd : silt_image_workdir(s);
    if (cwd.len == 0)
        cwd = SILT_LIT("/workspace");
    c->row = (struct silt_context_row){.slot = s->row.slot,
                                       .language = o->language,
                                       .is_default = o->is_default,
                                       .timeout_ms = o->timeout_ms,
                                       .created_ms = silt_clock_wall_ms(),
                                       .cwd = strndup(cwd.data, cwd.len),
                                       .env = o->env.len > 0 ? malloc(o->env.len) : NULL,
                                       .env_len = o->env.len};
    if (c->row.cwd == NULL || (o->env.len > 0 && c->row.env == NULL))
        abort();
    if (o->env.len > 0)
        memcpy(c->row.env, o->env.data, o->env.len);
    c->row.used_ms = c->row.created_ms;
    make_uuid(c->row.id);
    *ret = c;
    if (silt_context_start(c, e) < 0) {
        silt_context_be_gone(c);
        return -1;
    }
    if (w != NULL)
        silt_context_wait(c, w);
    return 0;
}

struct silt_context *silt_context_find(struct silt_sandbox *s, silt_slice id)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (silt_slice_eq(silt_slice_of(c->row.id), id) && !c->removing)
            return c;
    }
    return NULL;
}

struct silt_context *silt_context_default(struct silt_sandbox *s, enum silt_language language)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (c->row.is_default && c->row.language == language && c->state != SILT_CONTEXT_DEAD
            && !c->removing)
            return c;
    }
    return NULL;
}

void silt_context_wait(struct silt_context *c, struct silt_context_wait *w)
{
    struct silt_error e;
    silt_list_init(&w->link);
    if (c->state == SILT_CONTEXT_STARTING) {
        silt_list_append(&c->starters, &w->link);
    } else if (c->state == SILT_CONTEXT_DEAD) {
        (void)silt_fail(&e, SILT_GONE, "%s", c->death.message);
        w->on_done(w, NULL, &e);
    } else {
        w->on_done(w, c, NULL);
    }
}

void silt_context_unwait(struct silt_context_wait *w)
{
    silt_list_remove(&w->link);
}

void silt_context_remove(struct silt_context *c, struct silt_context_wait *w)
{
    if (w != NULL) {
        silt_list_init(&w->link);
        silt_list_append(&c->enders, &w->link);
    }
    c->removing = true;
    c->restarting = false;
    if (c->state == SILT_CONTEXT_DEAD)
        silt_context_be_gone(c);
    else /* its process still unknown: ends once the agent has reported everything */
        silt_context_kill(c, "deleted", "the context was deleted");
}

void silt_context_restart(struct silt_context *c, struct silt_context_wait *w)
{
    silt_list_init(&w->link);
    silt_list_append(&c->starters, &w->link);
    c->restarting = true;
    bool finishing = c->kernel.ending && c->state != SILT_CONTEXT_DEAD;
    if (c->exec != NULL || c->warm.asked != NULL || finishing)
        silt_context_kill(c, "restarted", "the context was restarted");
    else
        silt_context_start_again(c);
}

/* ---- end of its sandbox or of siltd ---- */

void silt_context_drop_all(struct silt_sandbox *s, const struct silt_error *e)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (c->state != SILT_CONTEXT_DEAD) { /* its exec was not known yet */
            silt_context_set_death(c, "crash", e->text);
            c->removing = true;
            silt_context_die(c, e);
        } else {
            silt_context_be_gone(c);
        }
    }
}

void silt_context_forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        silt_loop_cancel(s->registry->loop, &c->deadline);
        silt_context_close_kernel(c);
        silt_code_run_forget_all(c);
        silt_zygote_fork_free(&c->warm);
        free_context(&c->grave);
    }
    silt_list_init(&s->contexts);
}
