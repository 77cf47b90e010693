/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/cell.h"
#include "sandbox/image.h"
#include "sandbox/spare.h"
#include "sandbox/start.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>

enum {
    START_MS = 60000,
    PONG_MS = 1000,   /* for one that runs nothing to say so */
    SETTLE_MS = 2000, /* the same, after a run */
    SILENT_MS = 1000, /* from the end of the control socket to the end of the process */
    INTERRUPT_AGAIN_MS = 700, /* what it has to say of the first takes it a while */
    RESULT_MAX = 4 << 20, /* bytes of one format of a result */
    INIT_MAX = 16 << 20,  /* bytes of the first line: an environment, each byte of it escaped */
};

/* Arguments, each with its NUL. */
static const char python[] = "python3\0-I\0" SILT_KERNELS "/python/kernel";
#define NODE "node\0--no-force-async-hooks-checks\0" SILT_KERNELS "/node/kernel.cjs"
static const char node[] = NODE;
static const char javascript[] = NODE "\0javascript", typescript[] = NODE "\0typescript";

static const struct {
    const char *name;
    silt_slice command, spare; /* one that waits: without it there is none */
} languages[SILT_LANGUAGE_MAX] = {
    [SILT_PYTHON] = {"python", {python, sizeof(python)}, {NULL, 0}},
    [SILT_JAVASCRIPT] = {"javascript", {node, sizeof(node)}, {javascript, sizeof(javascript)}},
    [SILT_TYPESCRIPT] = {"typescript", {node, sizeof(node)}, {typescript, sizeof(typescript)}},
};

silt_slice silt_language_spare(enum silt_language l)
{
    return languages[l].spare;
}

const char *silt_language_name(enum silt_language l)
{
    return languages[l].name;
}

bool silt_language_find(silt_slice name, enum silt_language *ret)
{
    static const struct {
        const char *name;
        enum silt_language language;
    } names[] = {
        {"python", SILT_PYTHON}, {"python3", SILT_PYTHON},  {"javascript", SILT_JAVASCRIPT},
        {"js", SILT_JAVASCRIPT}, {"node", SILT_JAVASCRIPT}, {"typescript", SILT_TYPESCRIPT},
        {"ts", SILT_TYPESCRIPT},
    };
    for (size_t i = 0; i < SILT_COUNT(names); i++)
        if (silt_slice_ieq(name, silt_slice_of(names[i].name))) {
            *ret = names[i].language;
            return true;
        }
    return false;
}

/* ---- what others remember of it ---- */

void silt_context_save(struct silt_context *c)
{
    struct silt_error e;
    if (silt_store_put_context(c->sandbox->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "context=%s error=%s", c->row.id, e.text);
}

static void be_kept(struct silt_context *c)
{
    int fds[SILT_KERNEL_FDS];
    silt_kernel_fds(&c->kernel, fds);
    silt_sandbox_tell_super(
        c->sandbox, (struct silt_super_note){.type = SILT_SUPER_KEEP, .number = c->row.number}, fds,
        SILT_KERNEL_FDS);
    silt_context_save(c);
}

static void be_unkept(struct silt_context *c)
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

/* The only place that assigns it. What a former siltd's caller runs keeps the sandbox awake like any run. */
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

static void tell(struct silt_link *waits, struct silt_context *c, const struct silt_error *e)
{
    while (!silt_list_empty(waits)) {
        struct silt_context_wait *w = silt_list_first(waits, struct silt_context_wait, link);
        silt_list_remove(&w->link);
        w->on_done(w, c, e);
    }
}

static void free_context(struct silt_grave *g)
{
    struct silt_context *c = silt_container_of(g, struct silt_context, grave);
    silt_context_row_fini(&c->row);
    free(c);
}

/* Nothing of it is left: out of the list; those who wait for that are told. */
static void be_gone(struct silt_context *c)
{
    silt_warm_forget(&c->warm);
    silt_list_remove(&c->link);
    c->sandbox->registry->contexts_starting -= c->state == SILT_CONTEXT_STARTING; /* it could not even begin */
    c->sandbox->context_count--;
    silt_loop_bury(c->sandbox->registry->loop, &c->grave);
    tell(&c->enders, NULL, NULL);
}

static void set_death(struct silt_context *c, const char *cause, const char *message)
{
    if (c->death.cause[0] != 0)
        return; /* the first reason is the reason */
    c->death.at_ms = silt_clock_wall_ms();
    (void)snprintf(c->death.cause, sizeof(c->death.cause), "%s", cause);
    (void)snprintf(c->death.message, sizeof(c->death.message), "%.*s", (int)sizeof(c->death.message) - 1, message);
}

/* What its end says, unless somebody ended it. */
static void explain(struct silt_context *c, const struct silt_agent_end *end)
{
    char text[sizeof(c->death.message)];
    const char *cause = (end->flags & SILT_END_OOM) != 0 ? "oom"
                        : end->signal != 0               ? "signal"
                                                         : "exit";
    if ((end->flags & SILT_END_OOM) != 0)
        (void)snprintf(text, sizeof(text), "the sandbox used all of its %llu MiB of memory",
                       (unsigned long long)(c->sandbox->row.limits.memory_bytes >> 20));
    else if (end->signal != 0)
        (void)snprintf(text, sizeof(text), "the interpreter was ended by signal %d", end->signal);
    else
        (void)snprintf(text, sizeof(text), "the interpreter exited with status %d", end->code);
    set_death(c, cause, text);
    c->death.exit_code = end->code;
    c->death.signal = end->signal;
}

/* ---- its process ---- */

static int start(struct silt_context *c, struct silt_error *e);

static void start_again(struct silt_context *c)
{
    struct silt_error e;
    c->restarting = c->silent = c->interrupted = c->cold = false;
    c->death = (struct silt_death){.exit_code = -1};
    c->row.count = 0;
    c->row.deadline_ms = 0;
    if (start(c, &e) == 0)
        return;
    tell(&c->starters, NULL, &e);
    be_gone(c);
}

/* What is told to those who waited for one that was deleted, however its process ended. */
static void tell_deleted(const struct silt_context *c, struct silt_error *e)
{
    if (strcmp(c->death.cause, "deleted") == 0)
        (void)silt_fail(e, SILT_CONFLICT, "Context %s was deleted", c->row.id);
}

static void close_kernel(struct silt_context *c)
{
    silt_hearing_leave(&c->listener);
    silt_kernel_close(&c->kernel);
}

/* Its process is gone, or never was: `why` is told to those who wait for it. */
static void die(struct silt_context *c, const struct silt_error *why)
{
    struct silt_error told = *why, *e = &told;
    tell_deleted(c, e);
    bool born = c->state != SILT_CONTEXT_STARTING;
    if (!born)
        silt_spare_end_all(c->sandbox); /* memory may have been short */
    be_unkept(c);
    silt_loop_cancel(c->sandbox->registry->loop, &c->deadline);
    silt_cell_end_all(c, e); /* while it still is what it was */
    silt_context_enter(c, SILT_CONTEXT_DEAD);
    close_kernel(c);
    if (c->restarting && c->sandbox->state == SILT_SANDBOX_RUNNING) {
        start_again(c);
        return;
    }
    tell(&c->starters, NULL, e);
    if (c->removing || !born)
        be_gone(c);
}

static void die_of(struct silt_context *c, const struct silt_agent_end *end)
{
    struct silt_error e;
    explain(c, end);
    (void)silt_fail(&e, SILT_INTERNAL, "%s", c->death.message);
    die(c, &e);
}

/* A process that was not started for it came to nothing: nobody has noticed. */
static bool can_start_cold(const struct silt_context *c)
{
    return c->origin != SILT_CONTEXT_STARTED && c->state == SILT_CONTEXT_STARTING && c->death.cause[0] == 0 && !c->removing
           && !c->restarting && c->sandbox->state == SILT_SANDBOX_RUNNING;
}

static void start_cold(struct silt_context *c, const char *why)
{
    struct silt_error e;
    silt_log(SILT_LOG_DEBUG, "context.cold", "context=%s why=\"%s\"", c->row.id, why);
    be_unkept(c);
    close_kernel(c);
    c->cold = true;
    c->silent = false;
    if (start(c, &e) == 0)
        return;
    tell(&c->starters, NULL, &e);
    be_gone(c);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_context *c = silt_container_of(sink, struct silt_context, sink);
    c->exec = NULL;
    c->end = *end;
    silt_kernel_finish(&c->kernel); /* its last words */
}

static void on_finished(struct silt_kernel *k)
{
    struct silt_context *c = silt_container_of(k, struct silt_context, kernel);
    if (can_start_cold(c)) {
        if (c->end.code < 0)
            silt_warm_let_go(c->sandbox, c->row.number);
        start_cold(c, "the warm one ended");
    } else if (c->end.code >= 0) {
        die_of(c, &c->end);
    } else {
        silt_loop_cancel(c->sandbox->registry->loop, &c->deadline);
        silt_warm_reap(&c->warm, c->sandbox, c->row.number);
    }
}

static void on_reaped(struct silt_warm *w, const int32_t *status)
{
    struct silt_context *c = silt_container_of(w, struct silt_context, warm);
    if (status != NULL) {
        c->end.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
        c->end.code = c->end.signal != 0 ? 128 + c->end.signal : WEXITSTATUS(*status);
    }
    die_of(c, &c->end);
}

/* It may have spoken before we hear of it. */
static void on_forked(struct silt_warm *w, int32_t pid, const int *fds, int nfds)
{
    struct silt_context *c = silt_container_of(w, struct silt_context, warm);
    struct silt_error e;
    if (nfds > 0) {
        c->exec = silt_exec_hand_over(c->sandbox, c->row.number, pid, fds, nfds, &c->sink);
        if (c->doomed || c->removing || c->restarting)
            silt_exec_kill(c->exec, SIGKILL, 0);
    } else if (can_start_cold(c)) {
        start_cold(c, "no warm one");
    } else {
        (void)silt_fail(&e, SILT_INTERNAL, "the interpreter could not be started");
        set_death(c, "crash", e.text);
        die(c, &e);
    }
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_context *c = silt_container_of(sink, struct silt_context, sink);
    c->exec = NULL;
    if (can_start_cold(c)) {
        start_cold(c, e->text);
        return;
    }
    set_death(c, c->sandbox->state == SILT_SANDBOX_DESTROYING ? "destroyed" : "crash", e->text);
    die(c, e);
}

static void add_env(struct silt_buf *env, const struct silt_context *c)
{
    silt_env_base(env, c->sandbox, silt_image_user(c->sandbox).len == 0);
    silt_env_merge(env, (silt_slice){c->row.env, c->row.env_len});
}

static void send_init(struct silt_context *c)
{
    silt_auto_buf env, line;
    silt_buf_init(&env, SILT_START_MAX);
    silt_buf_init(&line, INIT_MAX);
    add_env(&env, c);
    struct silt_kernel_init init = {.language = silt_language_name(c->row.language),
                                    .cwd = silt_slice_of(c->row.cwd),
                                    .env = silt_buf_slice(&env),
                                    .result_bytes = RESULT_MAX};
    silt_kernel_say_init(&line, &init);
    silt_kernel_send(&c->kernel, &line);
}

/* The directory is entered by the kernel, which can tell that it is not there. */
static int start_process(struct silt_context *c, const int theirs[SILT_KERNEL_FDS],
                         struct silt_error *e)
{
    struct silt_exec_request q = {
        .mode = SILT_EXEC_PLAIN,
        .command = languages[c->row.language].command,
        .cwd = SILT_LIT("/"),
        .env = {c->row.env, c->row.env_len},
        .flags = SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES,
        .number = c->row.number,
        .secret = theirs[SILT_KERNEL_CONTROL],
        .out = theirs[SILT_KERNEL_OUT],
        .err = theirs[SILT_KERNEL_ERR],
    };
    return silt_exec_start(c->sandbox, NULL, &q, &c->sink, &c->exec, e);
}

static bool can_be_forked(const struct silt_context *c)
{
    return c->row.language == SILT_PYTHON && !c->cold && c->sandbox->registry->settings.zygotes > 0
           && silt_warm_suits(c->sandbox, (silt_slice){c->row.env, c->row.env_len});
}

/* A forked one, if it can be: then it is told of later. */
static int make_process(struct silt_context *c, struct silt_error *e)
{
    int theirs[SILT_KERNEL_FDS], made = 0;
    c->row.number = silt_registry_number(c->sandbox->registry);
    c->origin = can_be_forked(c) ? SILT_CONTEXT_FORKED : SILT_CONTEXT_STARTED;
    if (silt_kernel_open(&c->kernel, theirs, e) < 0)
        return -1;
    if (c->origin == SILT_CONTEXT_FORKED) {
        silt_warm_fork(&c->warm, c->sandbox, c->row.number, theirs); /* takes them */
        return 0;
    }
    made = start_process(c, theirs, e);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&theirs[i]);
    if (made < 0)
        silt_kernel_close(&c->kernel);
    return made;
}

static bool take_spare(struct silt_context *c)
{
    struct silt_spare_taken taken;
    silt_slice env = {c->row.env, c->row.env_len};
    if (c->cold || !silt_spare_take(c->sandbox, c->row.language, env, &c->sink, &taken))
        return false;
    c->origin = SILT_CONTEXT_SPARE;
    c->row.number = taken.number;
    c->exec = taken.exec;
    silt_kernel_adopt(&c->kernel, taken.fds);
    return true;
}

static int start(struct silt_context *c, struct silt_error *e)
{
    silt_kernel_init(&c->kernel);
    c->doomed = false;
    silt_context_enter(c, SILT_CONTEXT_STARTING);
    if (!take_spare(c) && make_process(c, e) < 0)
        return -1;
    if (c->exec == NULL && c->warm.asked == NULL)
        return 0; /* it failed at once, and all was told */
    silt_loop_after(c->sandbox->registry->loop, &c->deadline, START_MS);
    silt_kernel_listen(&c->kernel, true);
    send_init(c); /* it begins, while we go on */
    be_kept(c);
    return 0;
}

/* ---- what it says ---- */

static void be_ready(struct silt_context *c)
{
    c->interrupted = false;
    silt_context_enter(c, SILT_CONTEXT_IDLE);
    tell(&c->starters, c, NULL);
    silt_cell_begin_next(c);
}

static void send_ping(struct silt_context *c)
{
    silt_auto_buf line = {0};
    c->ping = c->sandbox->registry->next_cell++;
    silt_buf_init(&line, INIT_MAX);
    silt_kernel_say_ping(&line, c->ping);
    silt_kernel_send(&c->kernel, &line);
}

/* First its agent says that the signal is sent, then the interpreter that it has nothing to do. */
void silt_context_settle(struct silt_context *c)
{
    c->interrupted = false;
    c->ping = 0;
    silt_context_enter(c, SILT_CONTEXT_SETTLING);
    silt_loop_after(c->sandbox->registry->loop, &c->deadline, SETTLE_MS);
    if (c->exec != NULL)
        silt_exec_ping(c->exec);
    else
        send_ping(c);
}

/* The store has them as they were when something else had to be written. */
static void recall(struct silt_context *c, const struct silt_kernel_said *said)
{
    if (said->count > c->row.count)
        c->row.count = said->count;
    if (said->used_ms > c->row.used_ms && said->used_ms <= silt_clock_wall_ms())
        c->row.used_ms = said->used_ms;
}

static void on_kernel_pong(struct silt_context *c, const struct silt_kernel_said *said)
{
    if (said->id != c->ping || (c->state != SILT_CONTEXT_UNSURE && c->state != SILT_CONTEXT_SETTLING))
        return;
    recall(c, said);
    if (c->interrupted)
        silt_context_settle(c);
    else
        be_ready(c);
}

static void end_process(struct silt_context *c)
{
    if (c->exec != NULL)
        silt_exec_kill(c->exec, SIGKILL, 0);
    else
        c->doomed = true;
}

static void be_stale(struct silt_context *c, const struct silt_kernel_said *said)
{
    char why[SILT_LOG_QUOTE_SIZE];
    silt_log(SILT_LOG_DEBUG, "context.stale", "context=%s why=%s", c->row.id, silt_log_quote(said->value, why));
    end_process(c);
}

static void could_not_start(struct silt_context *c, const struct silt_kernel_said *said)
{
    struct silt_error e;
    enum silt_code code = silt_slice_eq(said->name, SILT_LIT("cwd"))       ? SILT_INVALID
                          : silt_slice_eq(said->name, SILT_LIT("ipython")) ? SILT_NOT_FOUND
                                                                           : SILT_INTERNAL;
    (void)silt_fail(&e, code, "%.*s", (int)said->value.len, said->value.data);
    tell(&c->starters, NULL, &e);
    silt_context_kill(c, "exit", e.text);
}

static void on_said(struct silt_context *c, const struct silt_kernel_said *said)
{
    switch (said->word) {
    case SILT_KERNEL_READY:
        if (c->state != SILT_CONTEXT_STARTING)
            return;
        if (languages[c->row.language].spare.len > 0)
            silt_spare_want(c->sandbox, c->row.language);
        be_ready(c);
        return;
    case SILT_KERNEL_PONG:
        on_kernel_pong(c, said);
        return;
    case SILT_KERNEL_STALE: /* of a warm one: it leaves, and another is started */
        if (c->origin != SILT_CONTEXT_STARTED && c->state == SILT_CONTEXT_STARTING)
            be_stale(c, said);
        return;
    case SILT_KERNEL_FAILED:
        if (c->state == SILT_CONTEXT_STARTING)
            could_not_start(c, said);
        return;
    case SILT_KERNEL_EXIT:
        set_death(c, "exit", "the code ended the interpreter");
        return;
    case SILT_KERNEL_RESULT:
    case SILT_KERNEL_ERROR:
    case SILT_KERNEL_INPUT:
    case SILT_KERNEL_DONE:
    case SILT_KERNEL_WORD_MAX:
        silt_cell_on_line(c, said);
        return;
    }
}

static void on_line(struct silt_kernel *k, silt_slice line)
{
    struct silt_context *c = silt_container_of(k, struct silt_context, kernel);
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
    struct silt_context *c = silt_container_of(k, struct silt_context, kernel);
    silt_hearing_start(c->sandbox->registry->parsers, line, &k->lane, &c->listener);
}

static void on_heard(struct silt_hearer *l, const struct silt_kernel_said *said, const struct silt_error *e)
{
    struct silt_context *c = silt_container_of(l, struct silt_context, listener);
    if (said == NULL)
        silt_kernel_refuse(&c->kernel, e->text);
    else if (!c->kernel.failed)
        on_said(c, said);
    silt_kernel_go_on(&c->kernel);
}

static void on_output(struct silt_kernel *k, int stream, silt_slice bytes)
{
    silt_cell_on_output(silt_container_of(k, struct silt_context, kernel), stream, bytes);
}

static bool is_full(struct silt_kernel *k)
{
    struct silt_context *c = silt_container_of(k, struct silt_context, kernel);
    return !c->interrupted && silt_cell_is_full(c);
}

/* The end of the process is told by its agent; it comes at once, or the guest closed the socket
 * itself. */
static void on_closed(struct silt_kernel *k, const char *why)
{
    struct silt_context *c = silt_container_of(k, struct silt_context, kernel);
    if (why != NULL) {
        silt_context_kill(c, "protocol",
                          "something inside spoke on the interpreter's control descriptor");
        return;
    }
    c->silent = true;
    if (c->exec != NULL)
        silt_loop_after(c->sandbox->registry->loop, &c->deadline, SILENT_MS);
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_context *c = silt_container_of(t, struct silt_context, deadline);
    if (c->silent)
        silt_context_kill(c, "protocol", "the interpreter's control descriptor was closed");
    else if (c->state == SILT_CONTEXT_STARTING)
        silt_context_kill(c, "timeout", "the interpreter did not start in time");
    else if (c->state == SILT_CONTEXT_SETTLING)
        be_ready(c); /* something holds it up: the next run may be interrupted, too */
    else
        silt_cell_on_time(c);
}

void silt_context_kill(struct silt_context *c, const char *cause, const char *message)
{
    set_death(c, cause, message);
    end_process(c);
}

/* Again and again: an interpreter can lose one that comes just before it waits for something, and
 * one that runs nothing takes no notice. */
bool silt_context_interrupt(struct silt_context *c)
{
    int64_t now_ms = c->sandbox->registry->loop->now_ms;
    if (c->state != SILT_CONTEXT_RUNNING && c->state != SILT_CONTEXT_UNSURE)
        return false;
    if (c->exec != NULL)
        silt_exec_interrupt(c->exec);
    if (!c->interrupted)
        c->patience_ms = now_ms + SILT_INTERRUPT_GRACE_MS;
    if (!c->interrupted || c->deadline.place == 0) /* who asks often does not put off its end */
        silt_loop_after(c->sandbox->registry->loop, &c->deadline, INTERRUPT_AGAIN_MS);
    c->interrupted = true;
    silt_kernel_resume(&c->kernel); /* that it stops must be heard */
    return true;
}

/* ---- its life ---- */

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

static struct silt_context *add(struct silt_sandbox *s)
{
    struct silt_context *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->sandbox = s;
    c->grave.free = free_context;
    c->death.exit_code = -1;
    c->sink = (struct silt_exec_sink){.ended = on_ended, .failed = on_failed};
    c->deadline = (struct silt_timer){.on_time = on_deadline};
    c->kernel = (struct silt_kernel){.loop = s->registry->loop,
                                     .unsent_sums = {&s->unsent_bytes, &s->registry->unsent_bytes},
                                     .lane = {.all = &s->registry->lanes, .user = &s->lanes},
                                     .on_output = on_output,
                                     .on_line = on_line,
                                     .on_long_line = on_long_line,
                                     .is_full = is_full,
                                     .on_closed = on_closed,
                                     .on_finished = on_finished};
    c->listener.on_heard = on_heard;
    c->warm = (struct silt_warm){.on_forked = on_forked, .on_reaped = on_reaped};
    silt_kernel_init(&c->kernel);
    silt_list_init(&c->cells);
    silt_list_init(&c->starters);
    silt_list_init(&c->enders);
    silt_list_append(&s->contexts, &c->link);
    s->context_count++;
    s->registry->contexts_starting++; /* which it is, from here on */
    return c;
}

/* Dead ones are kept for those who still ask for them, as long as there is room. */
static bool make_room(struct silt_sandbox *s)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (s->context_count < SILT_CONTEXTS_MAX)
            break;
        if (c->state == SILT_CONTEXT_DEAD)
            be_gone(c);
    }
    return s->context_count < SILT_CONTEXTS_MAX;
}

int silt_context_new(struct silt_sandbox *s, const struct silt_context_options *o,
                     struct silt_context_wait *w, struct silt_context **ret, struct silt_error *e)
{
    if (!make_room(s))
        return silt_fail(e, SILT_LIMIT, "this sandbox has %d contexts already; delete one",
                         SILT_CONTEXTS_MAX);
    struct silt_context *c = add(s);
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
    if (start(c, e) < 0) {
        be_gone(c);
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
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (silt_slice_eq(silt_slice_of(c->row.id), id) && !c->removing)
            return c;
    }
    return NULL;
}

struct silt_context *silt_context_default(struct silt_sandbox *s, enum silt_language language)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
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
        be_gone(c);
    else /* or, while its agent has not told of its process yet, when that has told all */
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
        start_again(c);
}

/* ---- when its sandbox or its siltd ends ---- */

void silt_context_drop_all(struct silt_sandbox *s, const struct silt_error *e)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (c->state != SILT_CONTEXT_DEAD) { /* its exec was not known yet */
            set_death(c, "crash", e->text);
            c->removing = true;
            die(c, e);
        } else {
            be_gone(c);
        }
    }
}

void silt_context_forget_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        silt_loop_cancel(s->registry->loop, &c->deadline);
        close_kernel(c);
        silt_cell_forget_all(c);
        silt_warm_free(&c->warm);
        free_context(&c->grave);
    }
    silt_list_init(&s->contexts);
}

void silt_context_load(struct silt_sandbox *s, struct silt_context_row *row)
{
    struct silt_context *c = add(s);
    c->row = *row;
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
}

static struct silt_context *find_number(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (c->row.number == number)
            return c;
    }
    return NULL;
}

void silt_context_on_pong(struct silt_sandbox *s, uint64_t number)
{
    struct silt_context *c = number != 0 ? find_number(s, number) : NULL;
    if (c != NULL && c->state == SILT_CONTEXT_SETTLING && c->ping == 0)
        send_ping(c);
}

/* Whether it is at work it says itself, when it is not. */
void silt_context_adopt(struct silt_sandbox *s, uint64_t number, const int fds[SILT_KERNEL_FDS])
{
    struct silt_context *c = find_number(s, number);
    if (c == NULL || c->ping != 0) {
        for (int i = 0; i < SILT_KERNEL_FDS; i++)
            (void)close(fds[i]);
        return;
    }
    silt_kernel_adopt(&c->kernel, fds);
    send_ping(c);
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
    int64_t left_ms = c->row.deadline_ms - silt_clock_wall_ms();
    if (c->row.deadline_ms > 0) /* the deadline stays written when its run has ended */
        silt_loop_after(s->registry->loop, &c->deadline, left_ms > PONG_MS ? left_ms : PONG_MS);
}

bool silt_context_adopt_exec(struct silt_sandbox *s, uint64_t number)
{
    struct silt_context *c = find_number(s, number);
    if (c == NULL || c->exec != NULL || c->state == SILT_CONTEXT_DEAD)
        return false; /* its pong may have come first: then it is idle, or runs already */
    c->exec = silt_exec_adopt(s, number, true, &c->sink);
    return true;
}

void silt_context_settle_all(struct silt_sandbox *s)
{
    struct silt_error e;
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (c->exec != NULL && c->ping != 0 && !c->removing)
            continue;
        c->removing = true;
        if (c->exec != NULL) { /* nobody can talk to it any more */
            silt_context_kill(c, "daemon_restart",
                              "the daemon was restarted while the context began");
            continue;
        }
        (void)silt_fail(&e, SILT_GONE, "the daemon was restarted");
        die(c, &e);
    }
}
