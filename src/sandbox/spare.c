/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/spare.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/context.h"
#include "sandbox/start.h"

#include <signal.h>
#include <stdlib.h>

enum {
    SOON_MS = 50,    /* after a context is ready, whose first code should have the processor */
    LOOK_MS = 5000,  /* how often the sandbox's memory is looked at while there is one */
    SHARE = 4,       /* memory is short when less than one part in so many is free */
    SIZE = 64 << 20, /* of memory, generously */
};

/*   WAITING --taken--> (a context's)
 *       \--ended, or told to--> ENDING --its exec has ended--> (gone) */
struct silt_spare {
    struct silt_link link;
    struct silt_sandbox *sandbox; /* borrowed */
    enum silt_language language;  /* Python: it is forked; else Node */
    bool stocked;                 /* since its sandbox was ready: without the environment that it got later */
    bool ending;
    uint64_t number;
    int fds[SILT_KERNEL_FDS];
    struct silt_exec *exec; /* NULL: silt-priv is asked to fork it */
    struct silt_exec_sink sink;
    struct silt_warm warm;
};

/* A question to silt-priv how much memory is in use. */
struct silt_spare_look {
    struct silt_sandbox *sandbox; /* borrowed; NULL: nobody wants to know any more */
};

static void free_spare(struct silt_spare *x)
{
    silt_list_remove(&x->link);
    silt_warm_forget(&x->warm);
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

/* ---- their end ---- */

/* One that ends by itself would do so again. */
static void on_gone(struct silt_spare *x)
{
    x->sandbox->spares.given_up = x->sandbox->spares.given_up || !x->ending;
    free_spare(x);
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    struct silt_spare *x = silt_container_of(sink, struct silt_spare, sink);
    if (end->code < 0) /* silt-priv is its parent */
        silt_warm_let_go(x->sandbox, x->number);
    on_gone(x);
}

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    (void)e;
    on_gone(silt_container_of(sink, struct silt_spare, sink));
}

void silt_spare_end_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->spares.all)
    {
        struct silt_spare *x = silt_container_of(it, struct silt_spare, link);
        if (x->ending)
            continue;
        x->ending = true;
        if (x->exec != NULL)
            silt_exec_kill(x->exec, SIGKILL, 0);
    }
}

/* ---- their beginning ---- */

static void on_forked(struct silt_warm *w, int32_t pid, const int *fds, int nfds)
{
    struct silt_spare *x = silt_container_of(w, struct silt_spare, warm);
    if (nfds == 0) { /* none is warm yet */
        free_spare(x);
        return;
    }
    x->exec = silt_exec_hand_over(x->sandbox, x->number, pid, fds, nfds, &x->sink);
    if (x->ending)
        silt_exec_kill(x->exec, SIGKILL, 0);
}

static int start_node(struct silt_spare *x, const int theirs[SILT_KERNEL_FDS], struct silt_error *e)
{
    struct silt_exec_request q = {.mode = SILT_EXEC_PLAIN,
                                  .command = silt_language_spare(x->language),
                                  .cwd = SILT_LIT("/"),
                                  .flags = SILT_START_ARGV | SILT_START_SECRET | SILT_START_PIPES,
                                  .number = x->number,
                                  .secret = theirs[SILT_KERNEL_REQUESTS],
                                  .out = theirs[SILT_KERNEL_OUT],
                                  .err = theirs[SILT_KERNEL_ERR],
                                  .lines = theirs[SILT_KERNEL_LINES]};
    return silt_exec_start(x->sandbox, NULL, &q, &x->sink, &x->exec, e);
}

/* A Python that cannot be had may be gone when it returns. */
static int start(struct silt_spare *x, struct silt_error *e)
{
    int theirs[SILT_KERNEL_FDS];
    if (silt_kernel_make(x->fds, theirs, e) < 0)
        return -1;
    if (x->language == SILT_PYTHON) {
        silt_warm_fork(&x->warm, x->sandbox, x->number, theirs); /* takes them */
        return 0;
    }
    int started = start_node(x, theirs, e);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        silt_close_fd(&theirs[i]);
    return started;
}

static void add(struct silt_sandbox *s, enum silt_language language)
{
    struct silt_error e;
    struct silt_spare *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_spare){.sandbox = s,
                             .language = language,
                             .stocked = s->row.id[0] == 0,
                             .number = silt_registry_number(s->registry),
                             .fds = {-1, -1, -1, -1},
                             .sink = {.ended = on_ended, .failed = on_failed},
                             .warm = {.on_forked = on_forked}};
    silt_list_append(&s->spares.all, &x->link);
    if (start(x, &e) == 0)
        return;
    silt_log(SILT_LOG_DEBUG, "spare.start", "slot=%u error=\"%s\"", s->row.slot, e.text);
    s->spares.given_up = true;
    free_spare(x);
}

static bool serves(const struct silt_spare *x, enum silt_language language)
{
    return (x->language == SILT_PYTHON) == (language == SILT_PYTHON);
}

/* Also those that end: their memory is not free yet. */
static uint32_t count(const struct silt_sandbox *s, enum silt_language language)
{
    uint32_t n = 0;
    silt_list_each(it, &s->spares.all)
        n += serves(silt_container_of(it, struct silt_spare, link), language);
    return n;
}

static bool wants_node(const struct silt_sandbox *s)
{
    return s->spares.node_wanted && count(s, s->spares.language) < s->registry->settings.spares;
}

/* ---- memory ---- */

/* True: there is one more. What is cached and was not read for a while goes when somebody needs the room. */
static bool weigh(struct silt_sandbox *s, const struct silt_priv_stat *stat)
{
    uint64_t limit = s->row.limits.memory_bytes, used = stat->memory_bytes;
    used -= stat->memory_cache_bytes < used ? stat->memory_cache_bytes : used;
    uint64_t enough = limit - limit / SHARE;
    bool room = used < enough && enough - used > SIZE;
    if (used > enough)
        silt_spare_end_all(s);
    if (!room || s->spares.given_up || !wants_node(s))
        return false;
    add(s, s->spares.language);
    return !s->spares.given_up;
}

static void on_stat(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_spare_look *look = context;
    struct silt_sandbox *s = look->sandbox;
    (void)fds;
    (void)nfds;
    free(look);
    if (s == NULL)
        return;
    s->spares.look = NULL;
    bool added = a->ok && s->state == SILT_SANDBOX_RUNNING && weigh(s, &a->body.stat);
    int64_t left_ms = idle_at_ms(s) - s->registry->loop->now_ms;
    if (added && wants_node(s))
        set_timer(s, SOON_MS);
    else if (s->spares.node_wanted || !silt_list_empty(&s->spares.all))
        set_timer(s, left_ms < LOOK_MS ? left_ms : LOOK_MS);
}

static void on_time(struct silt_timer *t)
{
    struct silt_spares *p = silt_container_of(t, struct silt_spares, timer);
    struct silt_sandbox *s = silt_container_of(p, struct silt_sandbox, spares);
    struct silt_priv_request q = {.op = SILT_PRIV_STAT, .slot = s->row.slot};
    if (s->registry->loop->now_ms >= idle_at_ms(s)) {
        silt_spare_end_all(s);
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

void silt_spare_init(struct silt_sandbox *s)
{
    silt_list_init(&s->spares.all);
    s->spares.timer = (struct silt_timer){.on_time = on_time};
}

void silt_spare_want(struct silt_sandbox *s, enum silt_language language)
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

/* Node, and what it is made of, look at these when they start. */
static const char *const start_names[] = {"PATH=", "NODE_", "LD_",      "LC_",    "LANG",    "ICU_",
                                          "UV_",   "SSL_",  "OPENSSL_", "GLIBC_", "MALLOC_", NULL};

/* Whether it is what would be started now. */
static bool suits(const struct silt_spare *x, silt_slice env)
{
    const struct silt_sandbox *s = x->sandbox;
    if (x->language == SILT_PYTHON)
        return silt_warm_suits(s, env);
    return !silt_env_names(env, start_names)
           && !(x->stocked && silt_env_names((silt_slice){s->row.env, s->row.env_len}, start_names));
}

static struct silt_spare *find_waiting(struct silt_sandbox *s, enum silt_language language)
{
    silt_list_each(it, &s->spares.all)
    {
        struct silt_spare *x = silt_container_of(it, struct silt_spare, link);
        if (!x->ending && x->exec != NULL && serves(x, language))
            return x;
    }
    return NULL;
}

bool silt_spare_take(struct silt_sandbox *s, enum silt_language language, silt_slice env, struct silt_exec_sink *sink,
                     struct silt_spare_taken *ret)
{
    struct silt_spare *x = find_waiting(s, language);
    if (x == NULL || !suits(x, env))
        return false;
    *ret = (struct silt_spare_taken){.number = x->number, .exec = x->exec};
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        ret->fds[i] = silt_take_fd(&x->fds[i]);
    silt_exec_pass(x->exec, sink);
    free_spare(x);
    return true;
}

/* ---- in ready sandboxes ---- */

static void stock(struct silt_registry *r, enum silt_language language, uint32_t wanted)
{
    silt_list_each(it, &r->ready.ordinary)
    {
        struct silt_sandbox *s = silt_container_of(it, struct silt_sandbox, ready_link);
        if (wanted-- == 0)
            return;
        bool possible = language != SILT_PYTHON || silt_warm_suits(s, (silt_slice){NULL, 0});
        if (possible && s->state == SILT_SANDBOX_RUNNING && !s->spares.given_up && count(s, language) == 0)
            add(s, language);
    }
}

void silt_spare_stock(struct silt_registry *r)
{
    if (r->settings.zygotes > 0)
        stock(r, SILT_PYTHON, r->settings.ready_pythons);
    stock(r, SILT_JAVASCRIPT, r->settings.ready_nodes);
}

void silt_spare_on_claimed(struct silt_sandbox *s)
{
    if (silt_list_empty(&s->spares.all))
        return;
    s->spares.wanted_ms = s->registry->loop->now_ms;
    set_timer(s, LOOK_MS);
}

/* ---- when its sandbox or its siltd ends ---- */

static void stop_looking(struct silt_sandbox *s)
{
    silt_loop_cancel(s->registry->loop, &s->spares.timer);
    if (s->spares.look != NULL)
        s->spares.look->sandbox = NULL;
}

void silt_spare_drop_all(struct silt_sandbox *s)
{
    stop_looking(s);
    s->spares.look = NULL;
    while (!silt_list_empty(&s->spares.all))
        free_spare(silt_list_first(&s->spares.all, struct silt_spare, link));
}

void silt_spare_forget_all(struct silt_sandbox *s)
{
    free(s->spares.look);
    s->spares.look = NULL;
    silt_list_each(it, &s->spares.all)
        silt_warm_free(&silt_container_of(it, struct silt_spare, link)->warm);
    silt_spare_drop_all(s);
}
