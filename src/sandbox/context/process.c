/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/context/internal.h"
#include "sandbox/core/image.h"
#include "sandbox/context/prestarted.h"
#include "sandbox/core/start_frame.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum {
    START_MS = 60000,
    RESULT_MAX = 4 << 20, /* per format of a result */
    INIT_MAX = 16 << 20,  /* of the first line: an environment with every byte escaped */
};

/* ---- start ---- */

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
    struct silt_kernel_init init = {
        .language = silt_language_name(c->row.language),
        .cwd = silt_slice_of(c->row.cwd),
        .env = silt_buf_slice(&env),
        .user = silt_image_user(c->sandbox),
        .result_bytes = RESULT_MAX,
        .awaited = c->row.is_default}; /* created because a client has code for it */
    silt_kernel_say_init(&line, &init);
    silt_kernel_send(&c->kernel, &line);
}

/* The kernel changes to the directory itself, so that it can report a missing one. */
static int start_process(struct silt_context *c, const int theirs[SILT_KERNEL_FDS],
                         struct silt_error *e)
{
    struct silt_exec_request q = {
        .mode = SILT_EXEC_PLAIN,
        .command = silt_language_command(c->row.language),
        .cwd = SILT_LIT("/"),
        .env = {c->row.env, c->row.env_len},
        .flags = SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES
                 | (c->origin == SILT_CONTEXT_INNER ? SILT_START_FORK : 0),
        .number = c->row.number,
        .from = c->from,
        .secret = theirs[SILT_KERNEL_REQUESTS],
        .out = theirs[SILT_KERNEL_OUT],
        .err = theirs[SILT_KERNEL_ERR],
        .lines = theirs[SILT_KERNEL_LINES],
    };
    return silt_exec_start(c->sandbox, NULL, &q, &c->sink, &c->exec, e);
}

static bool can_be_forked(const struct silt_context *c)
{
    return c->row.language == SILT_PYTHON && !c->cold && c->sandbox->registry->settings.zygotes > 0
           && silt_zygote_fork_suits(c->sandbox, (silt_slice){c->row.env, c->row.env_len});
}

static enum silt_context_origin choose_origin(struct silt_context *c)
{
    c->from = 0;
    if (can_be_forked(c))
        c->from = silt_prestarted_to_fork(c->sandbox);
    return c->from != 0       ? SILT_CONTEXT_INNER
           : can_be_forked(c) ? SILT_CONTEXT_FORKED
                              : SILT_CONTEXT_STARTED;
}

/* Forks it if possible; the result is then reported later. */
static int make_process(struct silt_context *c, struct silt_error *e)
{
    int theirs[SILT_KERNEL_FDS], made = 0;
    c->row.number = silt_registry_number(c->sandbox->registry);
    c->origin = choose_origin(c);
    if (silt_kernel_open(&c->kernel, theirs, e) < 0)
        return -1;
    if (c->origin == SILT_CONTEXT_FORKED) {
        silt_zygote_fork_fork(&c->warm, c->sandbox, c->row.number, theirs); /* takes them */
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
    struct silt_prestarted_taken taken;
    silt_slice env = {c->row.env, c->row.env_len};
    if (c->cold || !silt_prestarted_take(c->sandbox, c->row.language, env, &c->sink, &taken))
        return false;
    c->origin = SILT_CONTEXT_SPARE;
    c->row.number = taken.number;
    c->exec = taken.exec;
    silt_kernel_adopt(&c->kernel, taken.fds);
    return true;
}

/* A context that the next siltd would not know is refused, and its process ended. */
static void keep_or_end(struct silt_context *c)
{
    struct silt_error e;
    if (silt_context_keep(c, &e) == 0)
        return;
    c->fault = e.code;
    silt_context_kill(c, "disk", e.text);
}

int silt_context_start(struct silt_context *c, struct silt_error *e)
{
    silt_kernel_init(&c->kernel);
    c->doomed = false;
    silt_context_enter(c, SILT_CONTEXT_STARTING);
    if (!take_spare(c) && make_process(c, e) < 0)
        return -1;
    if (c->exec == NULL && c->warm.asked == NULL)
        return 0; /* it failed at once and everything was reported */
    silt_loop_after(c->sandbox->registry->loop, &c->deadline, START_MS);
    silt_kernel_listen(&c->kernel, true);
    send_init(c); /* it starts while we go on */
    keep_or_end(c);
    return 0;
}

void silt_context_start_again(struct silt_context *c)
{
    struct silt_error e;
    c->restarting = c->silent = c->interrupted = c->cold = false;
    c->fault = SILT_OK;
    c->death = (struct silt_death){.exit_code = -1};
    c->row.count = 0;
    c->row.deadline_ms = 0;
    if (silt_context_start(c, &e) == 0)
        return;
    silt_context_tell(&c->starters, NULL, &e);
    silt_context_be_gone(c);
}

/* A process not started for this context was unusable: start one, unseen by clients. */
static bool can_start_cold(const struct silt_context *c)
{
    return c->origin != SILT_CONTEXT_STARTED && c->state == SILT_CONTEXT_STARTING
           && c->death.cause[0] == 0 && !c->removing && !c->restarting
           && c->sandbox->state == SILT_SANDBOX_RUNNING;
}

static void start_cold(struct silt_context *c, const char *why)
{
    struct silt_error e;
    char shown[sizeof(e.text)];
    (void)snprintf(shown, sizeof(shown), "%s", why);
    silt_error_show(shown, strlen(shown)); /* silt-init's words */
    silt_log(SILT_LOG_DEBUG, "context.cold", "context=%s why=\"%s\"", c->row.id, shown);
    if (c->origin == SILT_CONTEXT_INNER)
        silt_prestarted_on_forked(c->sandbox, c->from, false);
    silt_context_unkeep(c);
    silt_context_close_kernel(c);
    c->cold = true;
    c->silent = false;
    if (silt_context_start(c, &e) == 0)
        return;
    silt_context_tell(&c->starters, NULL, &e);
    silt_context_be_gone(c);
}

/* ---- end ---- */

void silt_context_end_process(struct silt_context *c)
{
    if (c->exec != NULL)
        silt_exec_kill(c->exec, SIGKILL, 0);
    else
        c->doomed = true;
}

/* Derives the cause of death from the exit, unless we ended it. */
static void explain(struct silt_context *c, const struct silt_agent_end *end)
{
    char text[sizeof(c->death.message)];
    const char *cause = (end->flags & SILT_END_OOM) != 0   ? "oom"
                        : (end->flags & SILT_END_TCP) != 0 ? "tcp_memory"
                        : end->signal != 0                 ? "signal"
                                                           : "exit";
    if ((end->flags & SILT_END_OOM) != 0)
        (void)snprintf(text, sizeof(text), "the sandbox used all of its %llu MiB of memory",
                       (unsigned long long)(c->sandbox->row.limits.memory_bytes >> 20));
    else if ((end->flags & SILT_END_TCP) != 0)
        (void)snprintf(text, sizeof(text), "%s", c->sandbox->row.death.message);
    else if (end->signal != 0)
        (void)snprintf(text, sizeof(text), "the interpreter was ended by signal %d", end->signal);
    else
        (void)snprintf(text, sizeof(text), "the interpreter exited with status %d", end->code);
    silt_context_set_death(c, cause, text);
    c->death.exit_code = end->code;
    c->death.signal = end->signal;
}

/* Its cause of death is known. */
static void die(struct silt_context *c)
{
    struct silt_error e;
    (void)silt_fail(&e, c->fault != SILT_OK ? c->fault : SILT_INTERNAL, "%s", c->death.message);
    silt_context_die(c, &e);
}

static void die_of(struct silt_context *c, const struct silt_agent_end *end)
{
    explain(c, end);
    die(c);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_context *c = silt_outer(sink, struct silt_context, sink);
    c->exec = NULL;
    c->end = *end;
    silt_kernel_finish(&c->kernel); /* reads its last output */
}

static void on_finished(struct silt_kernel *k)
{
    struct silt_context *c = silt_outer(k, struct silt_context, kernel);
    if (can_start_cold(c)) {
        if (c->end.code < 0)
            silt_zygote_fork_let_go(c->sandbox, c->row.number);
        start_cold(c, "the warm one ended");
    } else if (c->end.code >= 0) {
        die_of(c, &c->end);
    } else {
        silt_loop_cancel(c->sandbox->registry->loop, &c->deadline);
        silt_zygote_fork_reap(&c->warm, c->sandbox, c->row.number);
    }
}

static void on_reaped(struct silt_zygote_fork *w, const int32_t *status)
{
    struct silt_context *c = silt_outer(w, struct silt_context, warm);
    if (status != NULL) {
        c->end.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
        c->end.code = c->end.signal != 0 ? 128 + c->end.signal : WEXITSTATUS(*status);
    }
    die_of(c, &c->end);
}

/* The process may have written before we learn of it. */
static void on_forked(struct silt_zygote_fork *w, int32_t pid, const int *fds, int nfds)
{
    struct silt_context *c = silt_outer(w, struct silt_context, warm);
    if (nfds > 0) {
        c->exec = silt_exec_hand_over(c->sandbox, c->row.number, pid, fds, nfds, &c->sink);
        if (c->doomed || c->removing || c->restarting)
            silt_exec_kill(c->exec, SIGKILL, 0);
    } else if (can_start_cold(c)) {
        start_cold(c, "no warm one");
    } else {
        silt_context_set_death(c, "crash", "the interpreter could not be started");
        die(c);
    }
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct silt_context *c = silt_outer(sink, struct silt_context, sink);
    c->exec = NULL;
    if (can_start_cold(c)) {
        start_cold(c, e->text);
        return;
    }
    silt_context_set_death(c, c->sandbox->state == SILT_SANDBOX_DESTROYING ? "destroyed" : "crash",
                           e->text);
    if (c->fault != SILT_OK)
        die(c);
    else
        silt_context_die(c, e);
}

void silt_context_follow_process(struct silt_context *c)
{
    c->sink = (struct silt_exec_sink){.ended = on_ended, .failed = on_failed};
    c->warm = (struct silt_zygote_fork){.on_forked = on_forked, .on_reaped = on_reaped};
    c->kernel.on_finished = on_finished;
}
