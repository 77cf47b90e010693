/* SPDX-License-Identifier: Apache-2.0 */
/* silt-priv: has all rights and talks only to siltd. This process starts the workers, the janitor,
 * the keeper, the TCP watcher and zygote_parent, restarts those that die, and receives the channels
 * to new siltds from silt-super. It handles no requests itself. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parent.h"
#include "base/test_switch.h"
#include "config/config.h"
#include "priv/janitor.h"
#include "priv/keeper.h"
#include "priv/zygote_parent.h"
#include "priv/unexpected_fds.h"
#include "priv/tcp_memory.h"
#include "priv/helper.h"
#include "priv/worker.h"
#include "wire/super.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    WORKERS_MAX = 64,
    JANITOR_ROOM = 8 << 20, /* queue of notes while the janitor waits for the disk */
    DEATHS_MAX = 20,        /* of workers since the last quiet period: then silt-super decides */
    QUIET_MS = 5000,
    SWEEP_MAX_MS = 10000,
    ZYGOTE_PARENT_LEAST_MS = 100, /* if it lives shorter than this, it cannot run */
};

struct priv {
    struct silt_priv_helper unit;
    uint32_t workers_wanted;
    pid_t workers[WORKERS_MAX];     /* 0: none */
    struct silt_worker_desk *desks; /* one each, in shared memory */
    pid_t janitor;
    int janitor_end; /* the channel's other end, for a new janitor */
    struct silt_keeper keeping;
    pid_t keeper;
    pid_t tcp_watcher;
    struct silt_tcp_sums *tcp_sums; /* in shared memory */
    pid_t zygote_parent;            /* 0: none */
    int zygote_parent_end;          /* likewise */
    int64_t zygote_parent_ms;       /* when it was started */
    uint32_t zygotes;
    uint32_t renew;
    int siltd;      /* the channel that workers serve; -1: closed */
    int next_siltd; /* waits until the last worker of the previous channel is gone; -1: none */
    int super;
    int signals;
    int lock; /* held by us and every worker: see take_lock */
    sigset_t blocked;
    pid_t self; /* of the main process */
    unsigned deaths;
    int64_t last_death_ms;
};

static unsigned count_workers(const struct priv *p)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->workers_wanted; i++)
        n += p->workers[i] != 0;
    return n;
}

/* In a new child: restores signals and closes the main process's own descriptors. */
static void be_child(struct priv *p, const char *name)
{
    (void)sigprocmask(SIG_UNBLOCK, &p->blocked, NULL);
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
    silt_close_fd(&p->super);
    silt_close_fd(&p->signals);
    silt_close_fd(&p->next_siltd);
    if (p->keeper != 0) /* not in the keeper itself */
        silt_keeper_close(&p->keeping);
}

/* For those that no end of a channel tells that silt-priv has died. */
static void end_with_parent(const struct priv *p)
{
    if (silt_parent_end_with(p->self) < 0)
        _exit(1);
}

static _Noreturn void be_worker(struct priv *p, uint32_t number)
{
    struct silt_error e;
    be_child(p, "silt-priv:work");
    silt_close_fd(&p->janitor_end);
    silt_close_fd(&p->zygote_parent_end);
    if (silt_worker_run(&p->unit, p->siltd, &p->desks[number], &e) == 0)
        _exit(0);
    silt_log(SILT_LOG_ERROR, "worker.failed", "error=\"%s\"", e.text);
    _exit(1);
}

static _Noreturn void be_janitor(struct priv *p)
{
    be_child(p, "silt-priv:tidy");
    silt_close_fd(&p->siltd);
    silt_close_fd(&p->unit.janitor);
    silt_close_fd(&p->unit.zygote_parent);
    silt_close_fd(&p->zygote_parent_end);
    silt_close_fd(&p->lock);
    struct silt_janitor_place place = {.volumes = &p->unit.volumes,
                                       .gate = &p->unit.gate,
                                       .images = p->unit.images,
                                       .slots = p->unit.slots};
    silt_janitor_run(p->janitor_end, &place);
    _exit(0);
}

static _Noreturn void be_keeper(struct priv *p)
{
    be_child(p, "silt-priv:pool");
    end_with_parent(p);
    silt_close_fd(&p->siltd);
    silt_close_fd(&p->unit.janitor);
    silt_close_fd(&p->janitor_end);
    silt_close_fd(&p->unit.zygote_parent);
    silt_close_fd(&p->zygote_parent_end);
    silt_close_fd(&p->lock);
    silt_keeper_run(&p->keeping, &p->unit.volumes);
}

static _Noreturn void be_tcp_watcher(struct priv *p)
{
    be_child(p, "silt-priv:tcp");
    end_with_parent(p);
    silt_close_fd(&p->siltd);
    silt_close_fd(&p->unit.janitor);
    silt_close_fd(&p->janitor_end);
    silt_close_fd(&p->unit.zygote_parent);
    silt_close_fd(&p->zygote_parent_end);
    silt_close_fd(&p->lock);
    int *const others[] = {
        &p->unit.images,          &p->unit.init,           &p->unit.fetch,
        &p->unit.home_uts,        &p->unit.home_mnt,       &p->unit.gate.ns,
        &p->unit.locks,           &p->unit.volumes.trash,  &p->unit.volumes.layers,
        &p->unit.volumes.records, &p->unit.volumes.qgroups};
    for (size_t i = 0; i < SILT_COUNT(others); i++)
        silt_close_fd(others[i]);
    silt_tcp_memory_run(&p->unit, p->tcp_sums);
}

static _Noreturn void be_zygote_parent(struct priv *p)
{
    struct silt_error e;
    be_child(p, "silt-priv:warm");
    silt_close_fd(&p->siltd);
    silt_close_fd(&p->unit.janitor);
    silt_close_fd(&p->janitor_end);
    silt_close_fd(&p->unit.zygote_parent);
    silt_close_fd(&p->lock);
    struct silt_zygote_parent_place place = {.images = p->unit.images,
                                             .seccomp = &p->unit.seccomp,
                                             .zygotes = p->zygotes,
                                             .renew = p->renew};
    if (silt_zygote_parent_run(p->zygote_parent_end, &place, &e) == 0)
        _exit(0);
    silt_log(SILT_LOG_ERROR, "zygote_parent.failed", "error=\"%s\"", e.text);
    _exit(1);
}

static void start_workers(struct priv *p)
{
    for (uint32_t i = 0; i < p->workers_wanted && p->siltd >= 0; i++) {
        if (p->workers[i] != 0)
            continue;
        pid_t pid = fork();
        if (pid == 0)
            be_worker(p, i);
        if (pid < 0)
            silt_log(SILT_LOG_ERROR, "priv.fork", "errno=%d", errno);
        else
            p->workers[i] = pid;
    }
}

static void start_janitor(struct priv *p)
{
    pid_t pid = fork();
    if (pid == 0)
        be_janitor(p);
    if (pid < 0)
        silt_log(SILT_LOG_ERROR, "priv.fork", "errno=%d", errno);
    else
        p->janitor = pid;
}

static void start_keeper(struct priv *p)
{
    p->keeper = 0;
    pid_t pid = fork();
    if (pid == 0)
        be_keeper(p);
    if (pid < 0)
        silt_log(SILT_LOG_ERROR, "priv.fork", "errno=%d", errno);
    else
        p->keeper = pid;
}

static void start_tcp_watcher(struct priv *p)
{
    pid_t pid = fork();
    if (pid == 0)
        be_tcp_watcher(p);
    if (pid < 0)
        silt_log(SILT_LOG_ERROR, "priv.fork", "errno=%d", errno);
    p->tcp_watcher = pid > 0 ? pid : 0;
}

static void start_zygote_parent(struct priv *p)
{
    if (p->zygote_parent_end < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        be_zygote_parent(p);
    if (pid < 0)
        silt_log(SILT_LOG_ERROR, "priv.fork", "errno=%d", errno);
    p->zygote_parent = pid > 0 ? pid : 0;
    p->zygote_parent_ms = silt_clock_ms();
}

/* If it cannot run, it is not restarted: contexts then start cold. */
static void on_zygote_parent_died(struct priv *p, int status)
{
    silt_log(SILT_LOG_ERROR, "zygote_parent.died", "status=0x%x", (unsigned)status);
    p->zygote_parent = 0;
    if (silt_clock_ms() - p->zygote_parent_ms < ZYGOTE_PARENT_LEAST_MS)
        silt_close_fd(&p->zygote_parent_end);
    start_zygote_parent(p);
}

/* Workers of two channels never run at the same time: each siltd sends one request per slot at a
 * time, but two siltds do not know of each other. */
static void serve_next(struct priv *p)
{
    if (count_workers(p) > 0)
        return;
    if (p->next_siltd >= 0) {
        silt_unexpected_fds_hang_up(&p->siltd);
        p->siltd = silt_take_fd(&p->next_siltd);
        silt_priv_discard_stagings(&p->unit); /* of a siltd that died in between */
        silt_janitor_tell(p->unit.janitor, SILT_JANITOR_SWEEP, 0, -1);
    }
    start_workers(p);
}

/* 0, or -1 if workers die too often to continue. */
static int on_worker_died(struct priv *p, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) { /* siltd closed the channel */
        silt_unexpected_fds_hang_up(&p->siltd);
        return 0;
    }
    int64_t now = silt_clock_ms();
    p->deaths = now - p->last_death_ms > QUIET_MS ? 1 : p->deaths + 1;
    p->last_death_ms = now;
    silt_log(SILT_LOG_ERROR, "worker.died", "status=0x%x", status);
    return p->deaths > DEATHS_MAX ? -1 : 0;
}

static int reap(struct priv *p)
{
    int status, result = 0;
    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
        if (pid == p->janitor) {
            silt_log(SILT_LOG_ERROR, "janitor.died", "status=0x%x", status);
            start_janitor(p);
        }
        if (pid == p->keeper) {
            silt_log(SILT_LOG_ERROR, "keeper.died", "status=0x%x", status);
            start_keeper(p);
        }
        if (pid == p->tcp_watcher) {
            silt_log(SILT_LOG_ERROR, "tcp_watcher.died", "status=0x%x", status);
            start_tcp_watcher(p);
        }
        if (pid == p->zygote_parent)
            on_zygote_parent_died(p, status);
        for (uint32_t i = 0; i < p->workers_wanted; i++) {
            if (p->workers[i] != pid)
                continue;
            p->workers[i] = 0;
            silt_worker_answer_for(&p->unit, p->siltd, &p->desks[i]);
            if (on_worker_died(p, status) < 0)
                result = -1;
        }
    }
    if (p->siltd >= 0)
        start_workers(p);
    else
        serve_next(p);
    return result;
}

/* A new siltd. The old one's workers exit after their current request. */
static void on_peer(struct priv *p, int fd)
{
    silt_unexpected_fds_hang_up(&p->next_siltd);
    silt_unexpected_fds_hang_up(&p->siltd);
    p->next_siltd = fd;
    serve_next(p);
}

enum what { GO_ON, LEAVE, GIVE_UP, SWEEP };

static enum what on_super(struct priv *p)
{
    struct silt_super_note note;
    struct silt_parcel in = {.data = &note, .len = sizeof(note)};
    struct silt_error e;
    int got = silt_fd_recv(p->super, &in, &e);
    if (got == 0 || (got < 0 && e.code != SILT_PROTOCOL))
        return LEAVE; /* sandboxes keep running: the next silt-super starts with --fresh */
    if (got > 0 && in.len == sizeof(note) && note.type == SILT_SUPER_PEER && in.nfds == 1)
        on_peer(p, silt_take_fd(&in.fds[0]));
    silt_parcel_close(&in);
    return GO_ON;
}

static enum what on_signal(struct priv *p)
{
    struct signalfd_siginfo info;
    if (read(p->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return GO_ON;
    if (info.ssi_signo != SIGCHLD)
        return SWEEP;
    return reap(p) < 0 ? GIVE_UP : GO_ON;
}

static enum what serve(struct priv *p)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = p->super, .events = POLLIN},
                               {.fd = p->signals, .events = POLLIN}};
        enum what next = GO_ON;
        if (poll(fds, SILT_COUNT(fds), -1) < 0 && errno != EINTR)
            return LEAVE;
        if (fds[1].revents != 0)
            next = on_signal(p);
        if (next == GO_ON && fds[0].revents != 0)
            next = on_super(p);
        if (next != GO_ON)
            return next;
    }
}

static void end_child(pid_t pid, int wait_ms)
{
    for (int waited = 0; waited < wait_ms; waited++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        (void)poll(NULL, 0, 1);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void end_workers(struct priv *p)
{
    for (uint32_t i = 0; i < p->workers_wanted; i++)
        if (p->workers[i] != 0)
            end_child(p->workers[i], 0);
}

/* The instance ends, and with it every sandbox. */
static int sweep(struct priv *p, struct silt_error *e)
{
    end_workers(p);
    int done = silt_cgroups_clear(&p->unit.cgroups, e); /* zygote_parent reaps them */
    if (p->tcp_watcher > 0)
        end_child(p->tcp_watcher, 0);
    if (p->keeper > 0) /* only now: on a dead disk this may take long */
        end_child(p->keeper, 0);
    silt_close_fd(&p->unit.zygote_parent);
    silt_close_fd(&p->zygote_parent_end);
    if (p->zygote_parent > 0)
        end_child(p->zygote_parent, SWEEP_MAX_MS);
    silt_close_fd(&p->unit.janitor);
    silt_close_fd(&p->janitor_end);
    if (p->janitor > 0)
        end_child(p->janitor, SWEEP_MAX_MS);
    return done < 0 ? -1 : silt_cgroups_remove(&p->unit.cgroups, e);
}

static int open_signals(struct priv *p, struct silt_error *e)
{
    (void)sigemptyset(&p->blocked);
    (void)sigaddset(&p->blocked, SIGCHLD);
    (void)sigaddset(&p->blocked, SIGTERM);
    (void)sigaddset(&p->blocked, SIGINT);
    if (sigprocmask(SIG_BLOCK, &p->blocked, NULL) < 0)
        return silt_fail_errno(e, "block signals");
    p->signals = signalfd(-1, &p->blocked, SFD_CLOEXEC);
    if (p->signals < 0)
        return silt_fail_errno(e, "open signals");
    return 0;
}

static int open_janitor_channel(struct priv *p, struct silt_error *e)
{
    int pair[2], room = JANITOR_ROOM;
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    p->unit.janitor = pair[0];
    p->janitor_end = pair[1];
    (void)setsockopt(p->unit.janitor, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
    return 0;
}

/* Tests that remove a protection run without it: a warm Python has all protections. Except tests
 * about its origin, or about the one inside a sandbox. */
static bool wants_zygote_parent(const struct priv *p)
{
#ifdef SILT_UNSAFE_TESTS
    const char *without = getenv("SILT_WITHOUT");
    if (without != NULL && without[0] != 0 && !silt_without("staging_group")
        && !silt_without("trust_mark") && !silt_without("inner_zygote"))
        return false;
#endif
    return p->zygotes > 0;
}

static int open_zygote_parent_channel(struct priv *p, struct silt_error *e)
{
    int pair[2];
    if (!wants_zygote_parent(p))
        return 0;
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    p->unit.zygote_parent = pair[0];
    p->zygote_parent_end = pair[1];
    return 0;
}

/* A killed silt-priv may have left workers, which finish their requests: they hold the lock too,
 * and it is free when the last one is gone. */
static int take_lock(struct priv *p, struct silt_error *e)
{
    int64_t until = silt_clock_ms() + SWEEP_MAX_MS;
    p->lock = openat(p->unit.volumes.slots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->lock < 0)
        return silt_fail_errno(e, "open the lock");
    while (flock(p->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || silt_clock_ms() > until)
            return silt_fail_errno(e, "wait for workers of an earlier silt-priv");
        (void)poll(NULL, 0, 10);
    }
    return 0;
}

static int own_directory(char path[PATH_MAX], struct silt_error *e)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return silt_fail_errno(e, "find our own program");
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = 0;
    return 0;
}

/* Checked before opening anything that could take its number. */
static int find_gate(void)
{
    if (ioctl(SILT_SUPER_FD_GATE, NS_GET_NSTYPE) != CLONE_NEWNET)
        return -1;
    (void)fcntl(SILT_SUPER_FD_GATE, F_SETFD, FD_CLOEXEC);
    return SILT_SUPER_FD_GATE;
}

static int start(struct priv *p, const struct silt_config *c, struct silt_error *e)
{
    static char programs[PATH_MAX];
    struct silt_first_pids pids;
    int gate = find_gate();
    p->workers_wanted = c->workers < WORKERS_MAX ? c->workers : WORKERS_MAX;
    if (fcntl(p->super, F_SETFD, FD_CLOEXEC) < 0 || fcntl(p->siltd, F_SETFD, FD_CLOEXEC) < 0)
        return silt_fail_errno(e, "descriptors 3 and 4 of silt-super");
    if (own_directory(programs, e) < 0 || open_signals(p, e) < 0
        || silt_unexpected_fds_prepare(e) < 0)
        return -1;
    if (silt_keeper_open(&p->keeping, c->state, c->run, c->disk_pool, c->disk_reserve, e) < 0)
        return -1;
    if (silt_tcp_memory_open(c->run, c->ids_count, &p->tcp_sums, e) < 0)
        return -1;
    if (silt_first_pids_open(&pids, c->run, c->ids_count, c->fresh, e) < 0)
        return -1;
    if (silt_priv_helper_open(&p->unit, c, programs, gate, e) < 0)
        return -1;
    p->unit.pids = pids;
    if (take_lock(p, e) < 0)
        return -1;
    if (c->fresh && silt_priv_helper_clear(&p->unit, e) < 0)
        return -1;
    p->zygotes = c->interpreter_zygotes;
    p->renew = c->interpreter_renew;
    if (open_janitor_channel(p, e) < 0 || open_zygote_parent_channel(p, e) < 0)
        return -1;
    p->desks = mmap(NULL, sizeof(*p->desks) * WORKERS_MAX, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->desks == MAP_FAILED)
        return silt_fail_errno(e, "make shared memory");
    start_keeper(p);
    start_tcp_watcher(p);
    start_janitor(p);
    start_zygote_parent(p);
    start_workers(p);
    return 0;
}

static int run(struct priv *p, const struct silt_config *c, struct silt_error *e)
{
    if (start(p, c, e) < 0)
        return silt_because(e, "start silt-priv");
    silt_log(SILT_LOG_INFO, "priv.ready", "cgroup=v%d workers=%u", p->unit.cgroups.version,
             p->workers_wanted);
    enum what end = serve(p);
    if (end == SWEEP)
        return sweep(p, e);
    if (end == LEAVE)
        return 0;
    end_workers(p); /* siltd must notice at once */
    return silt_fail(e, SILT_INTERNAL, "workers die too often");
}

int main(int argc, char **argv)
{
    static struct silt_config config;
    static struct priv priv = {.siltd = SILT_SUPER_FD_SILTD,
                               .super = SILT_SUPER_FD_CHANNEL,
                               .next_siltd = -1,
                               .signals = -1,
                               .lock = -1,
                               .janitor_end = -1,
                               .zygote_parent_end = -1};
    struct silt_error e = {0};
    priv.self = getpid();
    if (silt_config_load(argc, argv, &config, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "priv.config", "error=\"%s\"", e.text);
        return 2;
    }
    silt_log_open("silt-priv", config.log_level);
    if (run(&priv, &config, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "priv.failed", "error=\"%s\"", e.text);
        return 1;
    }
    return 0;
}
