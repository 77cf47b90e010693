/* SPDX-License-Identifier: Apache-2.0 */
#include "super/super.h"
#include "base/clock.h"
#include "base/fd.h"
#include "super/child.h"
#include "super/notify.h"
#include "super/patience.h"
#include "super/reload.h"
#include "super/instance_dirs.h"
#include "super/token.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 5000,
    STEADY_MS = 10000,    /* a program that lived this long starts with the first back-off again */
    EARLY_DEATHS_MAX = 5, /* if the instance never served: give up */
    DRAIN_MS = 8000,      /* siltd itself takes at most 5 s */
    SETTLE_MS = 1000,     /* a new silt-priv may not handle SIGTERM yet */
    SWEEP_MS = 20000,
    LEAVE_MS = 5000, /* for the programs that end after siltd, before a reload */
};

static void enter(struct silt_super *s, enum silt_instance_state next);
static void hand_over(struct silt_super *s);

/* Which programs are connected. */
static const enum silt_program pairs[SILT_SUPER_PAIR_MAX][2] = {
    [SILT_SUPER_PAIR_PRIV] = {SILT_PROGRAM_SILTD, SILT_PROGRAM_PRIV},
    [SILT_SUPER_PAIR_EGRESS] = {SILT_PROGRAM_SILTD, SILT_PROGRAM_PROXY},
    [SILT_SUPER_PAIR_DIAL] = {SILT_PROGRAM_PROXY, SILT_PROGRAM_DIAL},
    [SILT_SUPER_PAIR_PREVIEW] = {SILT_PROGRAM_SILTD, SILT_PROGRAM_PREVIEW},
};

/* NULL: it is not in this pair, or the pair is not needed. */
static struct silt_child *other(struct silt_child *p, int pair)
{
    const enum silt_program *both = pairs[pair];
    bool of_gate = pair == SILT_SUPER_PAIR_EGRESS || pair == SILT_SUPER_PAIR_DIAL;
    if ((both[0] != p->which && both[1] != p->which) || (of_gate && p->super->birth->gate->ns < 0))
        return NULL;
    return &p->super->programs[both[0] == p->which ? both[1] : both[0]];
}

/* Without these programs there is no instance. */
static bool is_vital(const struct silt_child *p)
{
    return p->which == SILT_PROGRAM_SILTD || p->which == SILT_PROGRAM_PRIV;
}

/* Starting programs. */

/* silt-proxy and silt-preview send no descriptors to siltd, nor silt-proxy to its dialer. */
static void refuse_fds(int pair, const struct silt_child *of, int end)
{
    bool proxies = pair == SILT_SUPER_PAIR_EGRESS || pair == SILT_SUPER_PAIR_PREVIEW;
    if ((proxies && of->which == SILT_PROGRAM_SILTD) || of->which == SILT_PROGRAM_DIAL)
        silt_fd_refuse_fds(end);
}

static int connect_them(struct silt_child *p, struct silt_error *e)
{
    for (int pair = 0; pair < SILT_SUPER_PAIR_MAX; pair++) {
        int ends[2];
        struct silt_child *o = other(p, pair);
        if (o == NULL || p->ends[pair] >= 0)
            continue; /* the other program holds this pair's far end */
        if (silt_fd_pair(SOCK_SEQPACKET, ends, e) < 0)
            return -1;
        refuse_fds(pair, p, ends[0]);
        refuse_fds(pair, o, ends[1]);
        silt_close_fd(&o->ends[pair]);
        p->ends[pair] = ends[0];
        o->ends[pair] = ends[1];
    }
    return 0;
}

static int order_proxy(struct silt_child *p, int theirs, struct silt_error *e)
{
    const struct silt_gateway *g = p->super->birth->gate;
    bool dials = p->which == SILT_PROGRAM_DIAL;
    struct silt_exec_helper_order order = {
        .program = p->which, .fds = {theirs, dials ? g->ns : g->log}, .count = 2};
    if (dials)
        return silt_exec_helper_start(p->super->birth->starter, &order, &p->pid, e);
    for (int i = 0; i < g->nsockets; i++)
        order.fds[order.count++] = g->sockets[i];
    return silt_exec_helper_start(p->super->birth->starter, &order, &p->pid, e);
}

static int order_preview(struct silt_child *p, int theirs, struct silt_error *e)
{
    const struct silt_super_birth *birth = p->super->birth;
    struct silt_exec_helper_order order = {
        .program = p->which, .fds = {theirs, birth->preview}, .count = birth->preview < 0 ? 1 : 2};
    return silt_exec_helper_start(birth->starter, &order, &p->pid, e);
}

/* Descriptors as in wire/super.h, in the order of their numbers. */
static int order_birth(struct silt_child *p, int theirs, struct silt_error *e)
{
    struct silt_super *s = p->super;
    struct silt_exec_helper_order order = {.program = p->which, .fds = {theirs}, .count = 1};
    silt_auto_fd token = -1;
    if (p->which == SILT_PROGRAM_PREVIEW)
        return order_preview(p, theirs, e);
    if (!is_vital(p))
        return order_proxy(p, theirs, e);
    if (p->which == SILT_PROGRAM_SILTD) {
        if (silt_token_open(s->birth->config->token_file, &token, e) < 0)
            return -1;
        order.fds[order.count++] = s->birth->listen;
        order.fds[order.count++] = token;
    } else {
        /* Until we serve, processes of this instance are leftovers of an earlier one. */
        order.fresh = s->state != SILT_INSTANCE_SERVING && !s->resumed;
    }
    order.fds[order.count++] = p->ends[SILT_SUPER_PAIR_PRIV];
    if (p->which == SILT_PROGRAM_PRIV && s->birth->gate->ns >= 0)
        order.fds[order.count++] = s->birth->gate->ns;
    if (p->which == SILT_PROGRAM_SILTD)
        order.fds[order.count++] = s->watchdog.fd;
    if (p->which == SILT_PROGRAM_SILTD && s->birth->engine >= 0)
        order.fds[order.count++] = s->birth->engine;
    return silt_exec_helper_start(s->birth->starter, &order, &p->pid, e);
}

static int give_birth(struct silt_child *p, struct silt_error *e)
{
    int pair[2];
    if (connect_them(p, e) < 0 || silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (p->which != SILT_PROGRAM_SILTD) /* only siltd gives us descriptors to keep */
        silt_fd_refuse_fds(ours);
    if (silt_fd_nonblock(ours, e) < 0 || order_birth(p, theirs, e) < 0)
        return -1;
    silt_close_fd(&p->ends[SILT_SUPER_PAIR_PRIV]);
    p->channel = silt_take_fd(&ours);
    p->started_ms = silt_clock_ms();
    return 0;
}

/* It died, or could not be started. */
static void try_again(struct silt_child *p)
{
    struct silt_super *s = p->super;
    if (s->state == SILT_INSTANCE_STARTING && !s->resumed && is_vital(p)
        && ++p->early_deaths > EARLY_DEATHS_MAX) {
        silt_log(SILT_LOG_ERROR, "super.give_up", "program=%s deaths=%u", p->name, p->early_deaths);
        s->status = EXIT_FAILURE;
        enter(s, SILT_INSTANCE_DRAINING);
        return;
    }
    silt_loop_after(&s->loop, &p->restart, p->backoff_ms);
    p->backoff_ms = p->backoff_ms * 2 < BACKOFF_MAX_MS ? p->backoff_ms * 2 : BACKOFF_MAX_MS;
}

static void start(struct silt_child *p)
{
    struct silt_super *s = p->super;
    struct silt_error e;
    assert(p->pid == 0);
    if (give_birth(p, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "program.start", "program=%s error=\"%s\"", p->name, e.text);
        p->pid = 0;
        if (s->state <= SILT_INSTANCE_SERVING)
            try_again(p);
        return;
    }
    silt_log(SILT_LOG_INFO, "program.start", "program=%s pid=%d", p->name, p->pid);
    silt_child_greet(p);
    if (p->which == SILT_PROGRAM_SILTD)
        silt_watchdog_follow(&s->watchdog, p->pid);
    for (int pair = 0; pair < SILT_SUPER_PAIR_MAX; pair++) {
        struct silt_child *o = other(p, pair);
        if (o != NULL && o->pid > 0)
            silt_child_pump(o);
    }
}

static void on_restart(struct silt_timer *t)
{
    start(silt_outer(t, struct silt_child, restart));
}

/* Deaths. */

static void on_death(struct silt_child *p, int status)
{
    struct silt_super *s = p->super;
    int64_t lived_ms = silt_clock_ms() - p->started_ms;
    silt_log(s->state <= SILT_INSTANCE_SERVING ? SILT_LOG_WARN : SILT_LOG_INFO, "program.exit",
             "program=%s pid=%d status=%d signal=%d ms=%lld", p->name, p->pid,
             WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0, (long long)lived_ms);
    p->pid = 0;
    if (p->which == SILT_PROGRAM_SILTD)
        silt_watchdog_follow(&s->watchdog, 0);
    if (s->state == SILT_INSTANCE_HANDING_OVER && p->which == SILT_PROGRAM_SILTD)
        silt_child_drain(p);
    silt_child_hang_up(p);
    for (int pair = 0; pair < SILT_SUPER_PAIR_MAX; pair++) {
        struct silt_child *o = other(p, pair);
        if (o != NULL)
            silt_close_fd(&o->ends[pair]); /* its far end died with p */
    }
    if (lived_ms >= STEADY_MS)
        p->backoff_ms = BACKOFF_FIRST_MS;
    if (s->state <= SILT_INSTANCE_SERVING)
        try_again(p);
    else if (s->state == SILT_INSTANCE_HANDING_OVER)
        hand_over(s);
    else if (s->state == SILT_INSTANCE_DRAINING && p->which == SILT_PROGRAM_SILTD)
        enter(s, SILT_INSTANCE_SETTLING);
    else if (s->state >= SILT_INSTANCE_SETTLING && p->which == SILT_PROGRAM_PRIV)
        enter(s, SILT_INSTANCE_ENDED);
}

static void reap(struct silt_super *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == s->birth->starter->pid)
            silt_exec_helper_died(s->birth->starter);
        for (int i = 0; i < SILT_PROGRAM_MAX; i++)
            if (pid == s->programs[i].pid)
                on_death(&s->programs[i], status);
        (void)silt_reload_on_exit(s, pid, status);
        /* Anything else is an orphan, reparented to us as the subreaper. */
    }
}

/* Reload. */

/* siltd ends first: its last requests may need the others. Without its channel silt-priv leaves the
 * sandboxes as they are. Called for every end. */
static void hand_over(struct silt_super *s)
{
    bool ended = true;
    if (s->programs[SILT_PROGRAM_SILTD].pid > 0)
        return;
    if (!s->leaving) {
        s->leaving = true;
        silt_child_hang_up(&s->programs[SILT_PROGRAM_PRIV]);
        silt_child_signal(&s->programs[SILT_PROGRAM_PREVIEW], SIGTERM);
        silt_child_signal(&s->programs[SILT_PROGRAM_PROXY], SIGTERM);
        silt_child_signal(&s->programs[SILT_PROGRAM_DIAL], SIGTERM);
        silt_loop_after(&s->loop, &s->deadline, LEAVE_MS);
    }
    for (int i = 0; i < SILT_PROGRAM_MAX; i++)
        ended = ended && s->programs[i].pid == 0;
    if (!ended)
        return;
    silt_reload_exec(s);
    s->resumed = true;
    enter(s, SILT_INSTANCE_STARTING);
}

void silt_super_hand_over(struct silt_super *s)
{
    enter(s, SILT_INSTANCE_HANDING_OVER);
}

/* Shutdown. */

static void cancel_restarts(struct silt_super *s)
{
    for (int i = 0; i < SILT_PROGRAM_MAX; i++)
        silt_loop_cancel(&s->loop, &s->programs[i].restart);
}

static void tell(struct silt_super *s, const char *file, const char *address)
{
    char line[96];
    struct silt_error e;
    (void)snprintf(line, sizeof(line), "%s\n", address);
    if (silt_instance_dirs_tell(s->birth->config, file, line, &e) < 0)
        silt_log(SILT_LOG_ERROR, "super.address", "error=\"%s\"", e.text);
}

/* When the API's address file exists, the others do, too. */
static void tell_address(struct silt_super *s)
{
    if (s->birth->preview >= 0)
        tell(s, "preview-address", s->birth->preview_address);
    tell(s, "address", s->birth->address);
    silt_log(SILT_LOG_INFO, "super.ready", "instance=%s address=%s previews=%s",
             s->birth->config->instance, s->birth->address,
             s->birth->preview >= 0 ? s->birth->preview_address : "off");
    silt_notify("READY=1");
}

static void begin_hand_over(struct silt_super *s)
{
    cancel_restarts(s);
    silt_notify("RELOADING=1");
    s->leaving = false;
    silt_child_signal(&s->programs[SILT_PROGRAM_SILTD], SIGTERM);
    silt_loop_after(&s->loop, &s->deadline, DRAIN_MS);
    hand_over(s);
}

static void drain(struct silt_super *s)
{
    const struct silt_child *siltd = &s->programs[SILT_PROGRAM_SILTD];
    cancel_restarts(s);
    silt_notify("STOPPING=1");
    if (siltd->pid == 0) {
        enter(s, SILT_INSTANCE_SETTLING);
        return;
    }
    silt_child_signal(siltd, SIGTERM);
    silt_loop_after(&s->loop, &s->deadline, DRAIN_MS);
}

/* silt-priv kills what runs inside; if it is dead now, a new one is started for that. */
static void settle(struct silt_super *s)
{
    struct silt_child *priv = &s->programs[SILT_PROGRAM_PRIV];
    if (priv->pid == 0)
        start(priv);
    if (priv->pid == 0) {
        enter(s, SILT_INSTANCE_ENDED);
        return;
    }
    silt_loop_after(&s->loop, &s->deadline, priv->started_ms + SETTLE_MS - silt_clock_ms());
}

static void sweep(struct silt_super *s)
{
    silt_child_signal(&s->programs[SILT_PROGRAM_PREVIEW], SIGTERM);
    silt_child_signal(&s->programs[SILT_PROGRAM_PROXY], SIGTERM);
    silt_child_signal(&s->programs[SILT_PROGRAM_DIAL], SIGTERM);
    silt_child_signal(&s->programs[SILT_PROGRAM_PRIV], SIGTERM);
    silt_loop_after(&s->loop, &s->deadline, SWEEP_MS);
}

static void enter(struct silt_super *s, enum silt_instance_state next)
{
    s->state = next;
    silt_loop_cancel(&s->loop, &s->deadline);
    switch (next) {
    case SILT_INSTANCE_STARTING:
        start(&s->programs[SILT_PROGRAM_PRIV]);
        start(&s->programs[SILT_PROGRAM_SILTD]);
        start(&s->programs[SILT_PROGRAM_PREVIEW]);
        if (s->birth->gate->ns < 0)
            return;
        start(&s->programs[SILT_PROGRAM_PROXY]);
        start(&s->programs[SILT_PROGRAM_DIAL]);
        return;
    case SILT_INSTANCE_SERVING:
        tell_address(s);
        silt_reload_on_serving(s);
        return;
    case SILT_INSTANCE_HANDING_OVER:
        begin_hand_over(s);
        return;
    case SILT_INSTANCE_DRAINING:
        drain(s);
        return;
    case SILT_INSTANCE_SETTLING:
        settle(s);
        return;
    case SILT_INSTANCE_SWEEPING:
        sweep(s);
        return;
    case SILT_INSTANCE_ENDED:
        silt_loop_stop(&s->loop);
        return;
    }
}

void silt_super_on_ready(struct silt_super *s)
{
    if (s->state == SILT_INSTANCE_STARTING)
        enter(s, SILT_INSTANCE_SERVING);
}

/* Before a reload: siltd, or if it has ended, what is left. */
static void kill_late(struct silt_super *s)
{
    bool siltd = s->programs[SILT_PROGRAM_SILTD].pid > 0;
    for (int i = 0; i < SILT_PROGRAM_MAX; i++) {
        if (s->programs[i].pid == 0 || (siltd && i != SILT_PROGRAM_SILTD))
            continue;
        silt_log(SILT_LOG_WARN, "program.late", "program=%s", s->programs[i].name);
        silt_child_signal(&s->programs[i], SIGKILL);
    }
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_super *s = silt_outer(t, struct silt_super, deadline);
    enum silt_program late =
        s->state == SILT_INSTANCE_DRAINING ? SILT_PROGRAM_SILTD : SILT_PROGRAM_PRIV;
    if (s->state == SILT_INSTANCE_HANDING_OVER) {
        kill_late(s);
        return;
    }
    if (s->state == SILT_INSTANCE_SETTLING) {
        enter(s, SILT_INSTANCE_SWEEPING);
        return;
    }
    silt_log(SILT_LOG_WARN, "program.late", "program=%s", s->programs[late].name);
    silt_child_signal(&s->programs[late], SIGKILL);
}

static void on_signal(struct silt_watch *w, uint32_t events)
{
    struct silt_super *s = silt_outer(w, struct silt_super, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD) {
        reap(s);
        return;
    }
    silt_log(SILT_LOG_INFO, "super.signal", "signal=%u from=%u", info.ssi_signo, info.ssi_pid);
    if (info.ssi_signo == SIGUSR2)
        silt_reload_ask(s);
    else if (s->state <= SILT_INSTANCE_SERVING)
        enter(s, SILT_INSTANCE_DRAINING);
    else if (s->state == SILT_INSTANCE_HANDING_OVER)
        s->stop_asked = true;
    else if (s->state == SILT_INSTANCE_DRAINING)
        on_deadline(&s->deadline); /* second signal: stop waiting for requests */
}

static int watch_signals(struct silt_super *s, struct silt_error *e)
{
    sigset_t set;
    (void)sigprocmask(SIG_BLOCK, NULL, &set);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return silt_fail_errno(e, "watch signals");
    s->signals = (struct silt_watch){.fd = fd, .on_ready = on_signal};
    silt_loop_watch(&s->loop, &s->signals, EPOLLIN);
    return 0;
}

static void on_certificate(struct silt_certificate *c)
{
    struct silt_super *s = silt_outer(c, struct silt_super, certificate);
    silt_child_pump(&s->programs[SILT_PROGRAM_PREVIEW]);
}

static void init(struct silt_super *s, const struct silt_super_birth *birth)
{
    static const char *const names[SILT_PROGRAM_MAX] = {
        [SILT_PROGRAM_SILTD] = "siltd",          [SILT_PROGRAM_PRIV] = "silt-priv",
        [SILT_PROGRAM_PROXY] = "silt-proxy",     [SILT_PROGRAM_DIAL] = "silt-dial",
        [SILT_PROGRAM_PREVIEW] = "silt-preview",
    };
    *s = (struct silt_super){
        .birth = birth,
        .deadline = {.on_time = on_deadline},
        .certificate = {.loop = &s->loop, .config = birth->config, .on_due = on_certificate}};
    if (birth->kept != NULL) {
        s->keep = *birth->kept;
        *birth->kept = (struct silt_fd_store){0};
        s->resumed = s->reloading = true;
    } else {
        silt_fd_store_init(&s->keep, birth->config->ids_count);
    }
    for (int i = 0; i < SILT_PROGRAM_MAX; i++)
        s->programs[i] = (struct silt_child){.super = s,
                                             .which = (enum silt_program)i,
                                             .name = names[i],
                                             .channel = -1,
                                             .ends = {-1, -1, -1, -1},
                                             .watch = {.fd = -1},
                                             .restart = {.on_time = on_restart},
                                             .backoff_ms = BACKOFF_FIRST_MS};
}

int silt_super_run(const struct silt_super_birth *birth, int *ret_status, struct silt_error *e)
{
    static struct silt_super super;
    struct silt_super *s = &super;
    init(s, birth);
    if (silt_loop_open(&s->loop, e) < 0 || watch_signals(s, e) < 0
        || silt_watchdog_open(&s->watchdog, &s->loop, e) < 0)
        return -1;
    silt_route_watch_open(&s->outlook, &s->loop, birth->gate);
    silt_certificate_open(&s->certificate);
    enter(s, SILT_INSTANCE_STARTING);
    int got = s->state == SILT_INSTANCE_ENDED ? 0 : silt_loop_run(&s->loop, e);
    silt_watchdog_close(&s->watchdog);
    silt_certificate_close(&s->certificate);
    silt_route_watch_close(&s->outlook);
    silt_patience_begin();
    silt_fd_store_fini(&s->keep);
    silt_patience_end();
    silt_loop_close(&s->loop);
    silt_close_fd(&s->signals.fd);
    *ret_status = s->status;
    return got;
}
