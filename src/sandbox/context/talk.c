/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/context/run_queue.h"
#include "sandbox/context/internal.h"
#include "sandbox/context/prestarted.h"

enum {
    SETTLE_MS = 2000, /* for one that ran something to report itself idle */
    SILENT_MS = 1000, /* from end-of-file on its lines to the exit of the process */
    PING_MAX = 256,
};

void silt_context_be_ready(struct silt_context *c)
{
    c->interrupted = false;
    c->known = true;
    silt_context_enter(c, SILT_CONTEXT_IDLE);
    silt_context_tell(&c->starters, c, NULL);
    silt_code_run_begin_next(c);
}

void silt_context_send_ping(struct silt_context *c)
{
    silt_auto_buf line = {0};
    c->ping = c->sandbox->registry->next_cell++;
    silt_buf_init(&line, PING_MAX);
    silt_kernel_say_ping(&line, c->ping);
    silt_kernel_send(&c->kernel, &line);
}

/* First the agent confirms that the signal was sent, then the interpreter that it is idle. */
void silt_context_settle(struct silt_context *c)
{
    c->interrupted = false;
    c->ping = 0;
    silt_context_enter(c, SILT_CONTEXT_SETTLING);
    silt_loop_after(c->sandbox->registry->loop, &c->deadline, SETTLE_MS);
    if (c->exec != NULL)
        silt_exec_ping(c->exec);
    else
        silt_context_send_ping(c);
}

/* The store only has the values as of its last save. */
static void recall(struct silt_context *c, const struct silt_kernel_said *said)
{
    if (said->count > c->row.count)
        c->row.count = said->count;
    if (said->used_ms > c->row.used_ms && said->used_ms <= silt_clock_wall_ms())
        c->row.used_ms = said->used_ms;
}

static void on_kernel_pong(struct silt_context *c, const struct silt_kernel_said *said)
{
    if (said->id != c->ping
        || (c->state != SILT_CONTEXT_UNSURE && c->state != SILT_CONTEXT_SETTLING))
        return;
    recall(c, said);
    if (c->interrupted)
        silt_context_settle(c);
    else
        silt_context_be_ready(c);
}

static void be_stale(struct silt_context *c, const struct silt_kernel_said *said)
{
    char why[SILT_LOG_QUOTE_SIZE];
    silt_log(SILT_LOG_DEBUG, "context.stale", "context=%s why=%s", c->row.id,
             silt_log_quote(said->value, why));
    silt_context_end_process(c);
}

static void could_not_start(struct silt_context *c, const struct silt_kernel_said *said)
{
    struct silt_error e;
    enum silt_code code = silt_slice_eq(said->name, SILT_LIT("cwd"))       ? SILT_INVALID
                          : silt_slice_eq(said->name, SILT_LIT("ipython")) ? SILT_NOT_FOUND
                                                                           : SILT_INTERNAL;
    (void)silt_fail(&e, code, "%.*s", (int)said->value.len, said->value.data);
    silt_context_tell(&c->starters, NULL, &e);
    c->fault = code == SILT_NOT_FOUND ? code : SILT_OK;
    silt_context_kill(c, "exit", e.text);
}

/* Makes the next context of this kind start faster. Nothing to do if a zygote will be ready
 * soon. */
static void prepare_next(struct silt_context *c)
{
    if (c->origin == SILT_CONTEXT_INNER)
        silt_prestarted_on_forked(c->sandbox, c->from, true);
    else if (c->row.language != SILT_PYTHON)
        silt_prestarted_want(c->sandbox, c->row.language);
    else if (c->origin == SILT_CONTEXT_STARTED && c->cold && !c->warm.later)
        silt_prestarted_want_python(c->sandbox);
}

static void on_said(struct silt_context *c, const struct silt_kernel_said *said)
{
    switch (said->word) {
    case SILT_KERNEL_READY:
        if (c->state != SILT_CONTEXT_STARTING || c->death.cause[0] != 0)
            return; /* we have just ended it */
        prepare_next(c);
        silt_context_be_ready(c);
        return;
    case SILT_KERNEL_PONG:
        on_kernel_pong(c, said);
        return;
    case SILT_KERNEL_STALE: /* from a zygote's fork: it exits, and a process is started */
        if (c->origin != SILT_CONTEXT_STARTED && c->state == SILT_CONTEXT_STARTING)
            be_stale(c, said);
        return;
    case SILT_KERNEL_FAILED:
        if (c->state == SILT_CONTEXT_STARTING)
            could_not_start(c, said);
        return;
    case SILT_KERNEL_EXIT:
        silt_context_set_death(c, "exit", "the code ended the interpreter");
        return;
    case SILT_KERNEL_RESULT:
    case SILT_KERNEL_ERROR:
    case SILT_KERNEL_INPUT:
    case SILT_KERNEL_DONE:
    case SILT_KERNEL_WORD_MAX:
        silt_code_run_on_line(c, said);
        return;
    }
}

static void on_line(struct silt_kernel *k, silt_slice line)
{
    struct silt_context *c = silt_outer(k, struct silt_context, kernel);
    struct silt_kernel_said said;
    struct silt_error e;
    silt_auto_arena arena;
    silt_auto_buf told;
    silt_arena_init(&arena, SILT_KERNEL_TREE_MAX);
    silt_buf_init(&told, SILT_KERNEL_TOLD_MAX);
    if (silt_kernel_hear(&arena, &told, line, &said, &e) == 0)
        on_said(c, &said);
    else
        silt_kernel_refuse(k, e.text);
}

static void on_long_line(struct silt_kernel *k, struct silt_buf *line)
{
    struct silt_context *c = silt_outer(k, struct silt_context, kernel);
    silt_parse_thread_start(c->sandbox->registry->parsers, line, &k->lane, &c->listener);
}

static void on_heard(struct silt_parse_listener *l, const struct silt_kernel_said *said,
                     const struct silt_error *e)
{
    struct silt_context *c = silt_outer(l, struct silt_context, listener);
    if (said == NULL)
        silt_kernel_refuse(&c->kernel, e->text);
    else if (!c->kernel.failed)
        on_said(c, said);
    silt_kernel_go_on(&c->kernel);
}

static void on_output(struct silt_kernel *k, int stream, silt_slice bytes)
{
    silt_code_run_on_output(silt_outer(k, struct silt_context, kernel), stream, bytes);
}

static bool is_full(struct silt_kernel *k)
{
    struct silt_context *c = silt_outer(k, struct silt_context, kernel);
    return !c->interrupted && silt_code_run_is_full(c);
}

/* The agent will report the exit, at once unless the guest itself closed the pipe. */
static void on_closed(struct silt_kernel *k, const char *why)
{
    struct silt_context *c = silt_outer(k, struct silt_context, kernel);
    if (why != NULL) {
        silt_context_kill(c, "protocol",
                          "something inside spoke on the interpreter's control descriptor");
        return;
    }
    c->silent = true;
    if (c->exec != NULL)
        silt_loop_after(c->sandbox->registry->loop, &c->deadline, SILENT_MS);
}

void silt_context_hear(struct silt_context *c)
{
    c->kernel.on_output = on_output;
    c->kernel.on_line = on_line;
    c->kernel.on_long_line = on_long_line;
    c->kernel.is_full = is_full;
    c->kernel.on_closed = on_closed;
    c->listener.on_heard = on_heard;
}
