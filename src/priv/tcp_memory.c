/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/tcp_memory.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/test_switch.h"
#include "engine/network/tcp_use.h"
#include "priv/confine.h"
#include "priv/stop.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    TENSE_TICK_MS = 5,
    TICK_MS = 20,
    QUIET_TICK_MS = 50,
    /* Between two rounds while there is anything to watch: memory may move from one sandbox to
     * another. */
    ROUND_MAX_MS = 1000,
    /* After a round the process pauses for this many times the CPU time it took. */
    DUTY = 4,
    GRACE_MS = 300,    /* above the limit: for programs to close what was reset */
    DEBT = 10,         /* each millisecond above is paid off by ten below */
    STEP_MAX_MS = 100, /* longest step counted per round: the machine may be slow */
    ROOM = 8,          /* after resets an eighth of the limit is free */
    HARD = 2,          /* times the limit: no grace period */
    DEATH_MS = 100,    /* a process's memory is freed after its death */
    LOG_MS = 1000, /* between two log lines about one sandbox, which could otherwise fill the log */
    PRIORITY = -15, /* to compete with guests that use all CPUs */
    SOCKSTAT_MAX = 1024,
};

/* For sandboxes that are new, or have new limits, since the last round. */
static const uint64_t slack_most = 4 << 20;
static const uint64_t quiet_bytes = 1 << 20; /* far below every limit */

/* State of one sandbox, by slot. */
struct account {
    struct silt_cgroup_tcp group;
    uint64_t waiting;  /* bytes of unaccepted connections, at the last look */
    uint64_t reset;    /* bytes of connections that were reset and not closed yet */
    bool over;         /* it was above its limit in the last round */
    int64_t debt_ms;   /* plus DEBT for each millisecond above, minus one for each below */
    int64_t killed_ms; /* time of the last kill */
    int64_t at_ms;     /* of its last round */
    int64_t logged_ms;
    uint32_t connections, listeners; /* ended since the last log line */
};

struct watcher {
    const struct silt_priv_helper *unit;
    struct account *accounts;
    struct silt_tcp_sums *sums;
    struct silt_tcp_record *records; /* after the sums: by slot */
    struct silt_tcp_use *use;
    int sockstat;
    uint64_t page;
    uint64_t total; /* of the machine */
    bool failed;
    int64_t pause_until_ms;
    /* Of the last round, or the current one. */
    int64_t round_ms, step_ms; /* when it began, and the time since the one before */
    uint64_t least_total;      /* since then */
    uint64_t slack; /* no sandbox can pass its limit before the total grows by this much */
    bool tense; /* a sandbox was above its limit recently: it will soon be below, or be killed */
    /* The part of the total that groups are charged for, or that is unaccepted in sandboxes. */
    uint64_t known;
};

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static int measure(struct watcher *w, struct silt_error *e)
{
    char text[SOCKSTAT_MAX];
    uint64_t pages;
    ssize_t n = pread(w->sockstat, text, sizeof(text), 0);
    if (n < 0)
        return silt_fail_errno(e, "read /proc/net/sockstat");
    if (silt_tcp_use_machine((silt_slice){text, (size_t)n}, &pages, e) < 0)
        return -1;
    w->total = pages * w->page;
    if (w->total < w->least_total) /* memory that others release must not hide what one takes */
        w->least_total = w->total;
    return 0;
}

static void go_home(const struct watcher *w)
{
    if (setns(w->unit->home_net, CLONE_NEWNET) < 0)
        abort(); /* never continue in a foreign namespace */
}

/* A sandbox that ends in the meantime has nothing left to examine. */
static bool enter(struct watcher *w, uint32_t slot)
{
    struct silt_error ignored;
    silt_auto_fd volume = -1, pidfd = -1;
    if (silt_volume_open(&w->unit->volumes, slot, &volume, &ignored) < 0
        || silt_priv_find_init(w->unit, slot, volume, &pidfd, &ignored) < 0
        || setns(pidfd, CLONE_NEWNET) < 0)
        return false;
    silt_tcp_use_begin(w->use, silt_priv_helper_ids(w->unit, slot));
    return true;
}

static void leave(struct watcher *w)
{
    silt_tcp_use_end(w->use);
    go_home(w);
}

static uint64_t unknown(const struct watcher *w)
{
    return minus(w->total, w->known);
}

static void on_charged(void *context, uint32_t slot)
{
    struct watcher *w = context;
    struct silt_error ignored;
    if (slot >= w->unit->slots)
        return;
    struct account *a = &w->accounts[slot];
    if (a->at_ms < w->round_ms - 2 * ROUND_MAX_MS)
        *a = (struct account){0}; /* perhaps another sandbox */
    if (silt_cgroup_tcp(&w->unit->cgroups, slot, &a->group, &ignored) < 0)
        return;
    w->known += a->group.charged + a->waiting;
    a->at_ms = w->round_ms;
}

/* Before the kill: siltd looks here when a process has ended. */
static void note(const struct watcher *w, uint32_t slot, uint64_t used, bool kills)
{
    struct silt_tcp_record *r = &w->records[slot];
    *r = (struct silt_tcp_record){.at_ms = silt_clock_wall_ms(),
                                  .killed_ms = kills ? silt_clock_ms() : 0,
                                  .used = used,
                                  .limit = w->accounts[slot].group.limit};
    w->sums->kills += kills;
}

static void kill_guest(const struct watcher *w, uint32_t slot, struct account *a, uint64_t used)
{
    note(w, slot, used, true);
    silt_log(SILT_LOG_WARN, "tcp.kill", "slot=%u used_kib=%llu limit_kib=%llu", slot,
             (unsigned long long)(used >> 10), (unsigned long long)(a->group.limit >> 10));
    silt_cgroup_kill_guest(&w->unit->cgroups, slot);
    a->killed_ms = silt_clock_ms();
    a->debt_ms = 0;
    a->reset = 0;
}

static void count_reset(const struct watcher *w, uint32_t slot, struct account *a, uint64_t used)
{
    const struct silt_tcp_use *u = w->use;
    w->sums->connections += u->ended_connections;
    w->sums->listeners += u->ended_listeners;
    a->connections += u->ended_connections;
    a->listeners += u->ended_listeners;
    if (w->round_ms - a->logged_ms < LOG_MS)
        return;
    silt_log(SILT_LOG_WARN, "tcp.reset",
             "slot=%u used_kib=%llu limit_kib=%llu connections=%u listeners=%u", slot,
             (unsigned long long)(used >> 10), (unsigned long long)(a->group.limit >> 10),
             a->connections, a->listeners);
    a->logged_ms = w->round_ms;
    a->connections = a->listeners = 0;
}

/* Resets a little more than necessary, so that the guest is not above its limit again at once. What
 * was reset before counts as freed, until there was time to close it. */
static void reset(struct watcher *w, uint32_t slot, struct account *a, uint64_t used)
{
    uint64_t excess = minus(used, a->group.limit + a->reset);
    if (excess == 0)
        return;
    excess += a->group.limit / ROOM;
    note(w, slot, used, false);
    silt_tcp_use_reset(w->use, excess);
    a->reset += w->use->covered;
    count_reset(w, slot, a, used);
}

static void judge(struct watcher *w, uint32_t slot, struct account *a, uint64_t used)
{
    int64_t most = a->over ? STEP_MAX_MS : TICK_MS;
    a->over = used > a->group.limit;
    if (!a->over) {
        a->debt_ms = a->debt_ms > w->step_ms ? a->debt_ms - w->step_ms : 0;
        a->reset = 0;
        return;
    }
    if (w->round_ms - a->killed_ms < DEATH_MS)
        return;
    a->debt_ms += DEBT * (w->step_ms < most ? w->step_ms : most);
    if (a->debt_ms > DEBT * GRACE_MS || a->group.charged > HARD * a->group.limit)
        kill_guest(w, slot, a, used);
    else
        reset(w, slot, a, used);
}

/* Runs in the guest's namespace. Memory of unknown owners may belong to hidden connections. */
static uint64_t look(struct watcher *w, struct account *a)
{
    silt_tcp_use_look(w->use);
    w->known = minus(w->known, a->waiting) + w->use->waiting;
    a->waiting = w->use->waiting;
    w->use->hidden = w->use->hidden_max < unknown(w) ? w->use->hidden_max : unknown(w);
    return a->group.charged + a->waiting + w->use->hidden;
}

static void on_suspect(void *context, uint32_t slot)
{
    struct watcher *w = context;
    if (slot >= w->unit->slots || w->accounts[slot].at_ms != w->round_ms)
        return;
    struct account *a = &w->accounts[slot];
    uint64_t used = a->group.charged + a->waiting + unknown(w); /* upper bound */
    if (used > a->group.limit && enter(w, slot)) {
        used = look(w, a);
        judge(w, slot, a, used);
        leave(w);
    } else {
        judge(w, slot, a, 0);
    }
    w->tense = w->tense || a->debt_ms > 0;
    w->slack = minus(a->group.limit, used) < w->slack ? minus(a->group.limit, used) : w->slack;
}

static int64_t processor_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void look_at_all(struct watcher *w)
{
    const struct silt_cgroups *c = &w->unit->cgroups;
    int64_t now = silt_clock_ms(), began = processor_ms();
    w->step_ms = now - w->round_ms;
    w->round_ms = now;
    w->least_total = w->total;
    w->known = 0;
    w->slack = slack_most;
    w->tense = false;
    silt_cgroups_each_slot(c, on_charged, w);
    silt_cgroups_each_slot(c, on_suspect, w);
    if (!w->tense)
        w->pause_until_ms = silt_clock_ms() + DUTY * (processor_ms() - began);
}

static bool is_due(const struct watcher *w)
{
    int64_t now = silt_clock_ms();
    if (w->total <= quiet_bytes || now < w->pause_until_ms)
        return false;
    return now - w->round_ms >= ROUND_MAX_MS || w->slack == 0
           || minus(w->total, w->least_total) >= w->slack;
}

static void open_all(struct watcher *w, const struct silt_priv_helper *u,
                     struct silt_tcp_sums *sums)
{
    *w = (struct watcher){.unit = u,
                          .sums = sums,
                          .records = (struct silt_tcp_record *)(sums + 1),
                          .page = (uint64_t)sysconf(_SC_PAGESIZE)};
    w->accounts = calloc(u->slots, sizeof(*w->accounts));
    w->use = calloc(1, sizeof(*w->use));
    w->sockstat = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
    if (w->accounts == NULL || w->use == NULL)
        abort();
    (void)setpriority(PRIO_PROCESS, 0, PRIORITY);
}

static int tick_ms(const struct watcher *w)
{
    if (w->total <= quiet_bytes)
        return QUIET_TICK_MS;
    return w->tense ? TENSE_TICK_MS : TICK_MS;
}

/* Nothing else in silt-priv depends on this, so an error is logged once and retried. */
static void report(struct watcher *w, const struct silt_error *e)
{
    if (!w->failed)
        silt_log(SILT_LOG_ERROR, "tcp.unwatched", "error=\"%s\"", e->text);
    w->failed = true;
}

int silt_tcp_memory_open(const char *run_dir, uint32_t slots, struct silt_tcp_sums **ret,
                         struct silt_error *e)
{
    char path[PATH_MAX];
    size_t size = sizeof(struct silt_tcp_sums) + slots * sizeof(struct silt_tcp_record);
    if (snprintf(path, sizeof(path), "%s/tcp", run_dir) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "name of the run directory too long");
    silt_auto_fd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return silt_fail_errno(e, "open %s", path);
    void *all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        return silt_fail_errno(e, "map %s", path);
    *ret = all;
    return 0;
}

_Noreturn void silt_tcp_memory_run(const struct silt_priv_helper *u, struct silt_tcp_sums *sums)
{
    static struct watcher w;
    struct silt_error e;
    open_all(&w, u, sums);
    if (silt_priv_confine_watcher(&e) < 0)
        report(&w, &e); /* unconfined is better than no watcher */
    for (;;) {
        if (measure(&w, &e) < 0)
            report(&w, &e);
        else if (!silt_without("tcp_memory") && is_due(&w))
            look_at_all(&w);
        (void)poll(NULL, 0, tick_ms(&w));
    }
}
