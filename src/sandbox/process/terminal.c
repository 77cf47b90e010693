/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/terminal.h"
#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>

enum {
    /* Viewers are told to wait, but each may have one large message in flight. */
    QUEUE_MAX = 64 << 20,
    LINGER_MS = 5000, /* for input of the last viewer that is still queued */
};

/* Exists while there are viewers; it is the `in` of its process. */
struct silt_terminal {
    struct silt_stdin in;
    struct silt_process *process; /* borrowed, held */
    struct silt_process_watch watch;
    struct silt_link keyboards;
    struct silt_buf queue;
    size_t sent; /* bytes of it in flight to the agent */
    struct silt_timer linger;
};

static void let_go(struct silt_terminal *t)
{
    struct silt_process *p = t->process;
    silt_loop_cancel(p->sandbox->registry->loop, &t->linger);
    silt_process_unwatch(&t->watch);
    silt_buf_fini(&t->queue);
    p->in = NULL;
    free(t);
    silt_process_release(p);
}

static void push(struct silt_terminal *t)
{
    struct silt_process *p = t->process;
    if (p->stdin_owed || p->exec == NULL || p->row.status != SILT_PROCESS_RUNNING
        || t->queue.len == 0)
        return;
    t->sent = t->queue.len < SILT_FRAME_BODY_MAX ? t->queue.len : SILT_FRAME_BODY_MAX;
    silt_process_write(p, (silt_slice){t->queue.data, t->sent}, false);
}

static void tell_room(struct silt_terminal *t)
{
    silt_list_each(it, &t->keyboards)
    {
        struct silt_keyboard *k = silt_outer(it, struct silt_keyboard, link);
        k->on_room(k);
    }
}

static void on_taken(struct silt_stdin *in, bool closed)
{
    struct silt_terminal *t = silt_outer(in, struct silt_terminal, in);
    bool was_full = t->queue.len >= SILT_TERMINAL_QUEUE;
    silt_buf_drop(&t->queue, t->sent);
    t->sent = 0;
    if (closed || t->queue.len == 0)
        silt_buf_fini(&t->queue); /* its end is reported elsewhere */
    if (silt_list_empty(&t->keyboards) && t->queue.len == 0) {
        let_go(t);
        return;
    }
    push(t);
    if (was_full && t->queue.len < SILT_TERMINAL_QUEUE)
        tell_room(t);
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e)
{
    struct silt_terminal *t = silt_outer(w, struct silt_terminal, watch);
    (void)p;
    (void)e;
    if (what == SILT_PROCESS_STARTED)
        push(t);
}

static void on_linger(struct silt_timer *timer)
{
    let_go(silt_outer(timer, struct silt_terminal, linger));
}

static struct silt_terminal *terminal_of(struct silt_process *p)
{
    if (p->in != NULL)
        return silt_outer(p->in, struct silt_terminal, in);
    struct silt_terminal *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct silt_terminal){
        .in = {.on_taken = on_taken}, .process = p, .watch = {.on_event = on_event}};
    t->linger.on_time = on_linger;
    silt_list_init(&t->keyboards);
    silt_buf_init(&t->queue, QUEUE_MAX);
    silt_process_watch(p, &t->watch);
    silt_process_hold(p);
    p->in = &t->in;
    return t;
}

void silt_keyboard_join(struct silt_keyboard *k, struct silt_process *p)
{
    assert(silt_process_is_terminal(p));
    k->terminal = terminal_of(p);
    silt_loop_cancel(p->sandbox->registry->loop, &k->terminal->linger);
    silt_list_append(&k->terminal->keyboards, &k->link);
}

void silt_keyboard_leave(struct silt_keyboard *k)
{
    struct silt_terminal *t = k->terminal;
    if (t == NULL)
        return;
    k->terminal = NULL;
    silt_list_remove(&k->link);
    if (!silt_list_empty(&t->keyboards))
        return;
    if (t->queue.len == 0 || silt_process_is_over(t->process))
        let_go(t);
    else
        silt_loop_after(t->process->sandbox->registry->loop, &t->linger, LINGER_MS);
}

bool silt_keyboard_type(struct silt_keyboard *k, silt_slice bytes)
{
    struct silt_terminal *t = k->terminal;
    if (t == NULL || silt_process_is_over(t->process))
        return true;
    silt_buf_add(&t->queue, bytes);
    if (t->queue.broken) /* drop it; what is already queued is still sent */
        t->queue.broken = false;
    push(t);
    return t->queue.len < SILT_TERMINAL_QUEUE;
}

void silt_keyboard_resize(struct silt_keyboard *k, uint16_t columns, uint16_t rows)
{
    if (k->terminal != NULL && k->terminal->process->exec != NULL)
        silt_exec_resize(k->terminal->process->exec, silt_terminal_size(columns, rows));
}

struct silt_process *silt_terminal_find(struct silt_sandbox *s, silt_slice session)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (silt_process_is_terminal(p) && !silt_process_is_over(p) && !p->orphaned && !p->settling
            && p->exec != NULL && p->row.session != NULL
            && silt_slice_eq(silt_slice_of(p->row.session), session))
            return p;
    }
    return NULL;
}

/* Adds a quoted shell word that cannot be closed from inside. */
static void add_quoted(struct silt_buf *b, silt_slice word)
{
    silt_buf_add_byte(b, '\'');
    for (size_t i = 0; i < word.len; i++)
        if (word.data[i] == '\'')
            silt_buf_add(b, SILT_LIT("'\\''"));
        else
            silt_buf_add_byte(b, word.data[i]);
    silt_buf_add_byte(b, '\'');
}

int silt_terminal_start(struct silt_sandbox *s, struct silt_session *session,
                        const struct silt_terminal_options *o, struct silt_process_watch *w,
                        struct silt_process **ret, struct silt_error *e)
{
    silt_auto_buf command;
    silt_buf_init(&command, 6 * SILT_TERMINAL_SHELL_MAX);
    silt_buf_add(&command, SILT_LIT("\\builtin shopt -s execfail\n\\command exec -- "));
    add_quoted(&command, o->shell);
    silt_buf_addf(&command, "\n\\command kill -s %d \"$$\"", SILT_TERMINAL_NO_SHELL);
    struct silt_process_request q = {
        .exec = {.mode = SILT_EXEC_BACKGROUND,
                 .command = silt_buf_slice(&command),
                 .env =
                     SILT_LIT("TERM=xterm-256color\0PROMPT_COMMAND=clear; unset PROMPT_COMMAND\0"),
                 .flags = SILT_START_STDIN,
                 .terminal = silt_terminal_size(o->columns, o->rows)},
        .session = silt_slice_of(session->name),
    };
    if (command.broken)
        return silt_fail(e, SILT_LIMIT, "name of a shell of %zu bytes", o->shell.len);
    return silt_process_start(s, session, &q, w, ret, e);
}
