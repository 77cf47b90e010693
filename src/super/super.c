/* SPDX-License-Identifier: Apache-2.0 */
#include "super/super.h"
#include "base/clock.h"
#include "base/fd.h"
#include "event/loop.h"
#include "super/keep.h"
#include "super/notify.h"
#include "super/place.h"
#include "super/token.h"
#include "wire/super.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 5000,
    STEADY_MS = 10000,    /* who lived that long starts with the first back-off again */
    EARLY_DEATHS_MAX = 5, /* before the instance served once: it never will */
    DRAIN_MS = 8000,      /* siltd itself takes at most 5 s */
    SETTLE_MS = 1000,     /* a newborn silt-priv may not listen to SIGTERM yet */
    SWEEP_MS = 20000,
};

struct program {
    struct silt_super *super; /* borrowed */
    enum silt_program which;
    const char *name;
    pid_t pid;   /* 0: not running */
    int channel; /* ours, to it; -1: none */
    int end;     /* its end of the siltd-priv pair, not yet handed over; -1: none */
    struct silt_watch watch;
    struct silt_timer restart;
    int64_t started_ms;
    int64_t backoff_ms;
    unsigned early_deaths;
};

/*  STARTING --siltd is ready--> SERVING
 *      \----------signal----------+--> DRAINING --siltd ended--> SETTLING --silt-priv is awake-->
 *      \---too many early deaths--/    SWEEPING --silt-priv ended--> ENDED                      */
enum state { STARTING, SERVING, DRAINING, SETTLING, SWEEPING, ENDED };

struct silt_super {
    const struct silt_super_birth *birth; /* borrowed */
    struct silt_loop loop;
    enum state state;
    int status; /* to exit with */
    struct program programs[SILT_PROGRAM_MAX];
    struct silt_keep keep;
    uint32_t next_kept; /* what the new siltd gets next; keep.count: KEPT_ALL; beyond: all told */
    struct silt_watch signals;
    struct silt_timer deadline;
};

static void enter(struct silt_super *s, enum state next);
static void start(struct program *p);

static struct program *other(struct program *p)
{
    return &p->super
                ->programs[p->which == SILT_PROGRAM_SILTD ? SILT_PROGRAM_PRIV : SILT_PROGRAM_SILTD];
}

/* What we tell the programs */

/* false: the channel is full. A channel whose peer is gone swallows everything: its end is near. */
static bool tell(struct program *p, enum silt_super_message type, uint32_t key,
                 const struct silt_parcel *fds)
{
    struct silt_super_note note = {.type = type, .key = key};
    struct silt_parcel parcel = fds != NULL ? *fds : (struct silt_parcel){0};
    struct silt_error e;
    parcel.data = &note;
    parcel.len = sizeof(note);
    return silt_fd_send(p->channel, &parcel, &e) == 0 || e.sys != EAGAIN;
}

static bool tell_kept(struct silt_super *s, struct program *siltd)
{
    for (; s->next_kept < s->keep.count; s->next_kept++) {
        const struct silt_kept *k = &s->keep.items[s->next_kept];
        struct silt_parcel fds = {.fds = {k->channel, k->pidfd}, .nfds = 2};
        if (k->channel >= 0 && !tell(siltd, SILT_SUPER_KEPT, s->next_kept, &fds))
            return false;
    }
    if (s->next_kept == s->keep.count) {
        if (!tell(siltd, SILT_SUPER_KEPT_ALL, 0, NULL))
            return false;
        s->next_kept++;
    }
    return true;
}

static bool tell_peer(struct program *p)
{
    struct silt_parcel fds = {.fds = {p->end}, .nfds = 1};
    if (p->end < 0)
        return true;
    if (!tell(p, SILT_SUPER_PEER, 0, &fds))
        return false;
    silt_close_fd(&p->end);
    return true;
}

/* Says what waits to be said. Nothing is read before all is said: what siltd keeps anew does not
 * mix with what it is being handed. */
static void pump(struct program *p)
{
    if (p->channel < 0)
        return;
    bool said = p->which != SILT_PROGRAM_SILTD || tell_kept(p->super, p);
    said = said && tell_peer(p);
    silt_loop_watch(&p->super->loop, &p->watch, said ? EPOLLIN : EPOLLOUT);
}

/* What siltd tells us; it faces the network, so every number is checked */

static void on_keep(struct silt_super *s, uint32_t key, struct silt_parcel *fds)
{
    if (key >= s->keep.count || fds->nfds != 2) {
        silt_log(SILT_LOG_WARN, "keep.refused", "key=%u descriptors=%d", key, fds->nfds);
        return;
    }
    silt_keep_put(&s->keep, key, silt_take_fd(&fds->fds[0]), silt_take_fd(&fds->fds[1]));
}

static void on_note(struct silt_super *s, const struct silt_super_note *note,
                    struct silt_parcel *fds)
{
    switch ((enum silt_super_message)note->type) {
    case SILT_SUPER_KEEP:
        on_keep(s, note->key, fds);
        return;
    case SILT_SUPER_DROP:
        if (note->key < s->keep.count)
            silt_keep_drop(&s->keep, note->key);
        return;
    case SILT_SUPER_READY:
        if (s->state == STARTING)
            enter(s, SERVING);
        return;
    case SILT_SUPER_KEPT:
    case SILT_SUPER_KEPT_ALL:
    case SILT_SUPER_PEER:
    case SILT_SUPER_MESSAGE_MAX:
        break;
    }
    silt_log(SILT_LOG_WARN, "note.refused", "type=%u", note->type);
}

static void hang_up(struct program *p)
{
    silt_loop_forget(&p->super->loop, &p->watch);
    silt_close_fd(&p->channel);
}

/* It is dying, and its death is on the way, or it has lost its mind. */
static void on_channel_lost(struct program *p)
{
    hang_up(p);
    if (p->super->state <= SERVING)
        (void)kill(p->pid, SIGKILL);
}

static void on_channel(struct silt_watch *w, uint32_t events)
{
    struct program *p = silt_container_of(w, struct program, watch);
    struct silt_super_note note;
    struct silt_parcel in = {.data = &note, .len = sizeof(note)};
    struct silt_error e;
    if ((events & EPOLLIN) == 0) {
        if ((events & (EPOLLHUP | EPOLLERR)) != 0)
            on_channel_lost(p);
        else
            pump(p);
        return;
    }
    int got = silt_fd_recv(p->channel, &in, &e);
    if (got < 0
        && e.code == SILT_PROTOCOL) /* also when RLIMIT_NOFILE leaves no room to keep more */
        silt_log(SILT_LOG_WARN, "note.refused", "error=\"%s\"", e.text);
    else if (got == 0 || (got < 0 && e.sys != EAGAIN))
        on_channel_lost(p);
    else if (got > 0 && in.len == sizeof(note) && p->which == SILT_PROGRAM_SILTD)
        on_note(p->super, &note, &in);
    silt_parcel_close(&in);
}

/* Births */

static int connect_them(struct program *p, struct silt_error *e)
{
    int pair[2];
    if (p->end >= 0)
        return 0; /* the other one was born with the far end of it */
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_close_fd(&other(p)->end);
    p->end = pair[0];
    other(p)->end = pair[1];
    return 0;
}

/* Descriptors as in wire/super.h, in the order of their numbers. */
static int order_birth(struct program *p, int theirs, struct silt_error *e)
{
    struct silt_super *s = p->super;
    struct silt_starter_order order = {.program = p->which, .fds = {theirs}, .count = 1};
    silt_auto_fd token = -1;
    if (p->which == SILT_PROGRAM_SILTD) {
        if (silt_token_open(s->birth->config->token_file, &token, e) < 0)
            return -1;
        order.fds[order.count++] = s->birth->listen;
        order.fds[order.count++] = token;
    } else {
        /* Until we serve, whatever runs in this instance's name is left over from an earlier one.
         */
        order.fresh = s->state != SERVING;
    }
    order.fds[order.count++] = p->end;
    return silt_starter_start(s->birth->starter, &order, &p->pid, e);
}

static int give_birth(struct program *p, struct silt_error *e)
{
    int pair[2];
    if (connect_them(p, e) < 0 || silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (silt_fd_nonblock(ours, e) < 0 || order_birth(p, theirs, e) < 0)
        return -1;
    silt_close_fd(&p->end);
    p->channel = silt_take_fd(&ours);
    p->watch = (struct silt_watch){.fd = p->channel, .on_ready = on_channel};
    p->started_ms = silt_clock_ms();
    return 0;
}

/* It died, or could not be born. */
static void try_again(struct program *p)
{
    struct silt_super *s = p->super;
    if (s->state == STARTING && ++p->early_deaths > EARLY_DEATHS_MAX) {
        silt_log(SILT_LOG_ERROR, "super.give_up", "program=%s deaths=%u", p->name, p->early_deaths);
        s->status = EXIT_FAILURE;
        enter(s, DRAINING);
        return;
    }
    silt_loop_after(&s->loop, &p->restart, p->backoff_ms);
    p->backoff_ms = p->backoff_ms * 2 < BACKOFF_MAX_MS ? p->backoff_ms * 2 : BACKOFF_MAX_MS;
}

static void start(struct program *p)
{
    struct silt_super *s = p->super;
    struct silt_error e;
    assert(p->pid == 0);
    if (give_birth(p, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "program.start", "program=%s error=\"%s\"", p->name, e.text);
        p->pid = 0;
        if (s->state <= SERVING)
            try_again(p);
        return;
    }
    silt_log(SILT_LOG_INFO, "program.start", "program=%s pid=%d", p->name, p->pid);
    if (p->which == SILT_PROGRAM_SILTD)
        s->next_kept = 0;
    pump(p);
    if (other(p)->pid > 0)
        pump(other(p));
}

static void on_restart(struct silt_timer *t)
{
    start(silt_container_of(t, struct program, restart));
}

/* Deaths */

static void on_death(struct program *p, int status)
{
    struct silt_super *s = p->super;
    int64_t lived_ms = silt_clock_ms() - p->started_ms;
    silt_log(s->state <= SERVING ? SILT_LOG_WARN : SILT_LOG_INFO, "program.exit",
             "program=%s pid=%d status=%d signal=%d ms=%lld", p->name, p->pid,
             WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0, (long long)lived_ms);
    p->pid = 0;
    hang_up(p);
    silt_close_fd(&other(p)->end); /* its far end died with p */
    if (lived_ms >= STEADY_MS)
        p->backoff_ms = BACKOFF_FIRST_MS;
    if (s->state <= SERVING)
        try_again(p);
    else if (s->state == DRAINING && p->which == SILT_PROGRAM_SILTD)
        enter(s, SETTLING);
    else if (s->state >= SETTLING && p->which == SILT_PROGRAM_PRIV)
        enter(s, ENDED);
}

static void reap(struct silt_super *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid == s->birth->starter->pid)
            silt_starter_died(s->birth->starter);
        for (int i = 0; i < SILT_PROGRAM_MAX; i++)
            if (pid == s->programs[i].pid)
                on_death(&s->programs[i], status);
        /* Anything else lost its parent and came to us, the subreaper. */
    }
}

/* The end */

static void cancel_restarts(struct silt_super *s)
{
    for (int i = 0; i < SILT_PROGRAM_MAX; i++)
        silt_loop_cancel(&s->loop, &s->programs[i].restart);
}

static void tell_address(struct silt_super *s)
{
    char line[96];
    struct silt_error e;
    (void)snprintf(line, sizeof(line), "%s\n", s->birth->address);
    if (silt_place_tell(s->birth->config, "address", line, &e) < 0)
        silt_log(SILT_LOG_ERROR, "super.address", "error=\"%s\"", e.text);
    silt_log(SILT_LOG_INFO, "super.ready", "instance=%s address=%s", s->birth->config->instance,
             s->birth->address);
    silt_notify("READY=1");
}

static void drain(struct silt_super *s)
{
    const struct program *siltd = &s->programs[SILT_PROGRAM_SILTD];
    cancel_restarts(s);
    silt_notify("STOPPING=1");
    if (siltd->pid == 0) {
        enter(s, SETTLING);
        return;
    }
    (void)kill(siltd->pid, SIGTERM);
    silt_loop_after(&s->loop, &s->deadline, DRAIN_MS);
}

/* silt-priv ends what runs inside; when it is dead just now, one more is born to do that. */
static void settle(struct silt_super *s)
{
    struct program *priv = &s->programs[SILT_PROGRAM_PRIV];
    if (priv->pid == 0)
        start(priv);
    if (priv->pid == 0) {
        enter(s, ENDED);
        return;
    }
    silt_loop_after(&s->loop, &s->deadline, priv->started_ms + SETTLE_MS - silt_clock_ms());
}

static void sweep(struct silt_super *s)
{
    (void)kill(s->programs[SILT_PROGRAM_PRIV].pid, SIGTERM);
    silt_loop_after(&s->loop, &s->deadline, SWEEP_MS);
}

static void enter(struct silt_super *s, enum state next)
{
    s->state = next;
    silt_loop_cancel(&s->loop, &s->deadline);
    switch (next) {
    case STARTING:
        start(&s->programs[SILT_PROGRAM_PRIV]);
        start(&s->programs[SILT_PROGRAM_SILTD]);
        return;
    case SERVING:
        tell_address(s);
        return;
    case DRAINING:
        drain(s);
        return;
    case SETTLING:
        settle(s);
        return;
    case SWEEPING:
        sweep(s);
        return;
    case ENDED:
        silt_loop_stop(&s->loop);
        return;
    }
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_super *s = silt_container_of(t, struct silt_super, deadline);
    enum silt_program late = s->state == DRAINING ? SILT_PROGRAM_SILTD : SILT_PROGRAM_PRIV;
    if (s->state == SETTLING) {
        enter(s, SWEEPING);
        return;
    }
    silt_log(SILT_LOG_WARN, "program.late", "program=%s", s->programs[late].name);
    if (s->programs[late].pid > 0)
        (void)kill(s->programs[late].pid, SIGKILL);
}

static void on_signal(struct silt_watch *w, uint32_t events)
{
    struct silt_super *s = silt_container_of(w, struct silt_super, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGCHLD) {
        reap(s);
        return;
    }
    silt_log(SILT_LOG_INFO, "super.signal", "signal=%u from=%u", info.ssi_signo, info.ssi_pid);
    if (s->state <= SERVING)
        enter(s, DRAINING);
    else if (s->state == DRAINING)
        on_deadline(&s->deadline); /* asked twice: no more patience with requests */
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

static void init(struct silt_super *s, const struct silt_super_birth *birth)
{
    static const char *const names[SILT_PROGRAM_MAX] = {
        [SILT_PROGRAM_SILTD] = "siltd",
        [SILT_PROGRAM_PRIV] = "silt-priv",
    };
    *s = (struct silt_super){.birth = birth, .deadline = {.on_time = on_deadline}};
    silt_keep_init(&s->keep, birth->config->ids_count);
    for (int i = 0; i < SILT_PROGRAM_MAX; i++)
        s->programs[i] = (struct program){.super = s,
                                          .which = (enum silt_program)i,
                                          .name = names[i],
                                          .channel = -1,
                                          .end = -1,
                                          .watch = {.fd = -1},
                                          .restart = {.on_time = on_restart},
                                          .backoff_ms = BACKOFF_FIRST_MS};
}

int silt_super_run(const struct silt_super_birth *birth, int *ret_status, struct silt_error *e)
{
    static struct silt_super super;
    struct silt_super *s = &super;
    init(s, birth);
    if (silt_loop_open(&s->loop, e) < 0 || watch_signals(s, e) < 0)
        return -1;
    enter(s, STARTING);
    int got = s->state == ENDED ? 0 : silt_loop_run(&s->loop, e);
    silt_keep_fini(&s->keep);
    silt_loop_close(&s->loop);
    silt_close_fd(&s->signals.fd);
    *ret_status = s->status;
    return got;
}
