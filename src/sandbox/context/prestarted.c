/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/prestarted.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/context/context.h"
#include "sandbox/core/start_frame.h"
#include "sandbox/core/facet.h"

#include <signal.h>
#include <stdlib.h>

enum {
    SOON_MS = 50,          /* after a context is ready: its first code should have the CPU */
    LOOK_MS = 5000,        /* how often the sandbox's memory is checked while there is one */
    SHARE = 4,             /* memory is short if less than 1/SHARE is free */
    SIZE = 64 << 20,       /* generous estimate of its memory */
    PYTHON_SOON_MS = 1000, /* let the first context start its work */
    PYTHON_SIZE = 192 << 20,
    FAILURES_MAX = 2, /* useless prestarted Pythons in a row before giving up */
};

/*   WAITING --taken--> (a context's)
 *       \--ended, or told to--> ENDING --its exec has ended--> (gone) */
struct silt_prestarted {
    struct silt_link link;
    struct silt_sandbox *sandbox; /* borrowed */
    enum silt_language language;  /* Python: forked from a zygote; otherwise Node */
    /* The sandbox's own prestarted Python: contexts are forked from it, and it becomes none
     * itself. */
    bool forks;
    bool warm, useful; /* with forks: it can be forked; a forked context became ready */
    bool ending;
    uint64_t number;
    int fds[SILT_KERNEL_FDS];
    struct silt_exec *exec; /* NULL: silt-priv is forking it */
    struct silt_exec_sink sink;
    struct silt_zygote_fork fork;
};

/* A request to silt-priv for the memory in use. */
struct silt_prestarted_look {
    struct silt_sandbox *sandbox; /* borrowed; NULL: not wanted any more */
};

static void free_spare(struct silt_prestarted *x)
{
    silt_list_remove(&x->link);
    silt_zygote_fork_forget(&x->fork);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&x->fds[i]);
    free(x);
}

static int64_t idle_at_ms(const struct silt_sandbox *s)
{
    return s->spares.wanted_ms + s->registry->settings.spare_idle_ms;
}

static void set_timer(struct silt_sandbox *s, int64_t ms)
{
    silt_loop_after(s->registry->loop, &s->spares.timer, ms);
}

/* ---- end ---- */

/* One that exited by itself would do so again. */
static void on_gone(struct silt_prestarted *x)
{
    x->sandbox->spares.given_up = x->sandbox->spares.given_up || !x->ending;
    x->sandbox->spares.python_failures += x->forks && !x->useful && !x->ending;
    free_spare(x);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_prestarted *x = silt_outer(sink, struct silt_prestarted, sink);
    if (end->code < 0) /* silt-priv is its parent and has the status */
        silt_zygote_fork_let_go(x->sandbox, x->number);
    on_gone(x);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    (void)e;
    on_gone(silt_outer(sink, struct silt_prestarted, sink));
}

static void end(struct silt_prestarted *x)
{
    if (x->ending)
        return;
    x->ending = true;
    if (x->exec != NULL)
        silt_exec_kill(x->exec, SIGKILL, 0);
}

void silt_prestarted_end_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->spares.all) end(silt_outer(it, struct silt_prestarted, link));
}

/* ---- start ---- */

static void on_forked(struct silt_zygote_fork *w, int32_t pid, const int *fds, int nfds)
{
    struct silt_prestarted *x = silt_outer(w, struct silt_prestarted, fork);
    if (nfds == 0) { /* no zygote is ready yet */
        free_spare(x);
        return;
    }
    x->exec = silt_exec_hand_over(x->sandbox, x->number, pid, fds, nfds, &x->sink);
    if (x->ending)
        silt_exec_kill(x->exec, SIGKILL, 0);
}

static int start_program(struct silt_prestarted *x, const int theirs[SILT_KERNEL_FDS],
                         struct silt_error *e)
{
    struct silt_exec_request q = {.mode = SILT_EXEC_PLAIN,
                                  .command = x->forks ? silt_language_command(x->language)
                                                      : silt_language_spare(x->language),
                                  .cwd = SILT_LIT("/"),
                                  .flags = SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES
                                           | (x->forks ? SILT_START_WARM : 0),
                                  .number = x->number,
                                  .secret = theirs[SILT_KERNEL_REQUESTS],
                                  .out = theirs[SILT_KERNEL_OUT],
                                  .err = theirs[SILT_KERNEL_ERR],
                                  .lines = theirs[SILT_KERNEL_LINES]};
    return silt_exec_start(x->sandbox, NULL, &q, &x->sink, &x->exec, e);
}

/* On failure a Python may already be freed when it returns. */
static int start(struct silt_prestarted *x, struct silt_error *e)
{
    int theirs[SILT_KERNEL_FDS];
    if (silt_kernel_make(x->fds, theirs, e) < 0)
        return -1;
    if (x->language == SILT_PYTHON && !x->forks) {
        silt_zygote_fork_fork(&x->fork, x->sandbox, x->number, theirs); /* takes them */
        return 0;
    }
    int started = start_program(x, theirs, e);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&theirs[i]);
    return started;
}

static void add(struct silt_sandbox *s, enum silt_language language, bool forks)
{
    struct silt_error e;
    struct silt_prestarted *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_prestarted){.sandbox = s,
                                  .language = language,
                                  .forks = forks,
                                  .number = silt_registry_number(s->registry),
                                  .fds = {-1, -1, -1, -1},
                                  .sink = {.ended = on_ended, .failed = on_failed},
                                  .fork = {.on_forked = on_forked}};
    silt_list_append(&s->spares.all, &x->link);
    if (start(x, &e) == 0)
        return;
    silt_log(SILT_LOG_DEBUG, "spare.start", "slot=%u error=\"%s\"", s->row.slot, e.text);
    s->spares.given_up = true;
    free_spare(x);
}

static bool serves(const struct silt_prestarted *x, enum silt_language language)
{
    return !x->forks && (x->language == SILT_PYTHON) == (language == SILT_PYTHON);
}

/* Includes those that are ending: their memory is not free yet. */
static uint32_t count(const struct silt_sandbox *s, enum silt_language language)
{
    uint32_t n = 0;
    silt_list_each(it, &s->spares.all) n +=
        serves(silt_outer(it, struct silt_prestarted, link), language);
    return n;
}

static bool wants_node(const struct silt_sandbox *s)
{
    return s->spares.node_wanted && count(s, s->spares.language) < s->registry->settings.spares;
}

/* Includes one that is ending. */
static struct silt_prestarted *find_python(struct silt_sandbox *s)
{
    silt_list_each(it, &s->spares.all)
    {
        struct silt_prestarted *x = silt_outer(it, struct silt_prestarted, link);
        if (x->forks)
            return x;
    }
    return NULL;
}

static bool wants_python(struct silt_sandbox *s)
{
    return s->spares.python_wanted && s->spares.python_failures < FAILURES_MAX
           && find_python(s) == NULL;
}

/* ---- memory ---- */

/* How much more the sandbox may use and still keep a share free. Inactive page cache counts as
 * free, since the kernel reclaims it. */
static uint64_t find_room(struct silt_sandbox *s, const struct silt_priv_stat *stat)
{
    uint64_t limit = s->row.limits.memory_bytes, used = stat->memory_bytes;
    used -= stat->memory_cache_bytes < used ? stat->memory_cache_bytes : used;
    uint64_t enough = limit - limit / SHARE;
    if (used > enough)
        silt_prestarted_end_all(s);
    return used < enough ? enough - used : 0;
}

/* True: one more was started. */
static bool weigh(struct silt_sandbox *s, const struct silt_priv_stat *stat)
{
    uint64_t room = find_room(s, stat);
    if (s->spares.given_up)
        return false;
    if (wants_node(s) && room > SIZE)
        add(s, s->spares.language, false);
    else if (wants_python(s) && room > PYTHON_SIZE)
        add(s, SILT_PYTHON, true);
    else
        return false;
    return !s->spares.given_up;
}

static void on_stat(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_prestarted_look *look = context;
    struct silt_sandbox *s = look->sandbox;
    (void)fds;
    (void)nfds;
    free(look);
    if (s == NULL)
        return;
    s->spares.look = NULL;
    bool added = a->ok && s->state == SILT_SANDBOX_RUNNING && weigh(s, &a->body.stat);
    int64_t left_ms = idle_at_ms(s) - s->registry->loop->now_ms;
    if (added && (wants_node(s) || wants_python(s)))
        set_timer(s, SOON_MS);
    else if (s->spares.node_wanted || s->spares.python_wanted || !silt_list_empty(&s->spares.all))
        set_timer(s, left_ms < LOOK_MS ? left_ms : LOOK_MS);
}

static void on_time(struct silt_timer *t)
{
    struct silt_prestarted_set *p = silt_outer(t, struct silt_prestarted_set, timer);
    struct silt_sandbox *s = silt_outer(p, struct silt_sandbox, spares);
    struct silt_priv_request q = {.op = SILT_PRIV_STAT, .slot = s->row.slot};
    if (s->registry->loop->now_ms >= idle_at_ms(s)) {
        silt_prestarted_end_all(s);
        return;
    }
    if (p->look != NULL)
        return; /* its answer sets the timer */
    p->look = calloc(1, sizeof(*p->look));
    if (p->look == NULL)
        abort();
    p->look->sandbox = s;
    silt_priv_ask(s->registry->priv, &q, NULL, 0, on_stat, p->look);
}

/* ---- for contexts ---- */

static void init(struct silt_sandbox *s)
{
    silt_list_init(&s->spares.all);
    s->spares.timer = (struct silt_timer){.on_time = on_time};
}

void silt_prestarted_want(struct silt_sandbox *s, enum silt_language language)
{
    if (s->registry->settings.spares == 0)
        return;
    s->spares.node_wanted = true;
    s->spares.language = language;
    s->spares.wanted_ms = s->registry->loop->now_ms;
    s->spares.given_up = false;
    if (wants_node(s))
        set_timer(s, SOON_MS);
}

void silt_prestarted_want_python(struct silt_sandbox *s)
{
    if (s->registry->settings.spares == 0)
        return;
    s->spares.python_wanted = true;
    s->spares.wanted_ms = s->registry->loop->now_ms;
    s->spares.given_up = false;
    if (wants_python(s))
        set_timer(s, PYTHON_SOON_MS);
}

/* Any output counts as ready; its contents are ignored. */
static bool is_warm(struct silt_prestarted *x)
{
    char byte;
    x->warm = x->warm || read(x->fds[SILT_KERNEL_LINES], &byte, 1) == 1;
    return x->warm && !x->ending && x->exec != NULL;
}

uint64_t silt_prestarted_to_fork(struct silt_sandbox *s)
{
    struct silt_prestarted *x = find_python(s);
    return x != NULL && is_warm(x) ? x->number : 0;
}

void silt_prestarted_on_forked(struct silt_sandbox *s, uint64_t number, bool good)
{
    struct silt_prestarted *x = find_python(s);
    if (x == NULL || x->number != number)
        return;
    s->spares.wanted_ms = s->registry->loop->now_ms;
    x->useful = x->useful || good;
    s->spares.python_failures = x->useful ? 0 : s->spares.python_failures + 1;
    if (!good)
        end(x);
}

/* Variables that Node and its libraries read at program start. */
static const char *const start_names[] = {"PATH=", "NODE_", "LD_",      "LC_",    "LANG",    "ICU_",
                                          "UV_",   "SSL_",  "OPENSSL_", "GLIBC_", "MALLOC_", NULL};

/* True if it equals what would be started now. */
static bool suits(const struct silt_prestarted *x, silt_slice env)
{
    const struct silt_sandbox *s = x->sandbox;
    if (x->language == SILT_PYTHON)
        return silt_zygote_fork_suits(s, env);
    return !silt_env_names(env, start_names);
}

static struct silt_prestarted *find_waiting(struct silt_sandbox *s, enum silt_language language)
{
    silt_list_each(it, &s->spares.all)
    {
        struct silt_prestarted *x = silt_outer(it, struct silt_prestarted, link);
        if (!x->ending && x->exec != NULL && serves(x, language))
            return x;
    }
    return NULL;
}

bool silt_prestarted_take(struct silt_sandbox *s, enum silt_language language, silt_slice env,
                          struct silt_exec_sink *sink, struct silt_prestarted_taken *ret)
{
    struct silt_prestarted *x = find_waiting(s, language);
    if (x == NULL || !suits(x, env))
        return false;
    *ret = (struct silt_prestarted_taken){.number = x->number, .exec = x->exec};
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        ret->fds[i] = silt_take_fd(&x->fds[i]);
    silt_exec_pass(x->exec, sink);
    free_spare(x);
    return true;
}

static void on_claimed(struct silt_sandbox *s)
{
    if (silt_list_empty(&s->spares.all))
        return;
    s->spares.wanted_ms = s->registry->loop->now_ms;
    set_timer(s, LOOK_MS);
}

/* ---- end of its sandbox or of siltd ---- */

static void stop_looking(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->spares.timer);
    if (s->spares.look != NULL)
        s->spares.look->sandbox = NULL;
}

static void drop_all(struct silt_sandbox *s)
{
    stop_looking(s);
    s->spares.look = NULL;
    s->spares.python_wanted = false;
    s->spares.python_failures = 0;
    while (!silt_list_empty(&s->spares.all))
        free_spare(silt_list_first(&s->spares.all, struct silt_prestarted, link));
}

static void forget_all(struct silt_sandbox *s)
{
    free(s->spares.look);
    s->spares.look = NULL;
    silt_list_each(it, &s->spares.all)
        silt_zygote_fork_free(&silt_outer(it, struct silt_prestarted, link)->fork);
    drop_all(s);
}

static void drop_ended(struct silt_sandbox *s, const struct silt_error *why)
{
    (void)why;
    drop_all(s);
}

const struct silt_facet silt_prestarted_facet = {
    .init = init,
    .on_claimed = on_claimed,
    .on_ended = drop_ended, /* after their execs */
    .forget = forget_all,
    .on_out_of_memory = silt_prestarted_end_all,
};
