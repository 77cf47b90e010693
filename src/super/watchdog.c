/* SPDX-License-Identifier: Apache-2.0 */
#include "super/watchdog.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { OWN_STALL_MS = 3 * SILT_WATCHDOG_LOOK_MS, PROC_MAX = 4096 };

static const uint64_t ns_of_ms = 1000 * 1000;

/* Judging. */

static void start_over(struct silt_watchdog *w)
{
    w->stood_ms = 0;
    w->told = false;
}

/* How long siltd was stuck since the last sample: neither processing its queue nor kept from
 * running. The kernel counts a wait for a CPU only when it is over, so a runnable siltd counts as
 * stuck for the CPU time it used (a busy loop); one that sleeps in the kernel, for the time it was
 * not waiting for a CPU. */
static int64_t stood_since(const struct silt_watchdog_look *last,
                           const struct silt_watchdog_look *now)
{
    int64_t passed = now->now_ms - last->now_ms;
    int64_t ran = (int64_t)((now->cpu_ns - last->cpu_ns) / ns_of_ms);
    int64_t waited = (int64_t)((now->delay_ns - last->delay_ns) / ns_of_ms);
    if (now->state == 'T' || now->state == 't' || passed > OWN_STALL_MS)
        return 0;
    if (now->state == 'R')
        return ran < passed ? ran : passed;
    return waited < passed ? passed - waited : 0;
}

static enum silt_watchdog_verdict abort_or_leave(struct silt_watchdog *w, int64_t now_ms)
{
    int64_t oldest = w->aborts_ms[0];
    w->judged = true;
    if (oldest != 0 && now_ms - oldest < SILT_WATCHDOG_WINDOW_MS)
        return SILT_WATCHDOG_LEAVE;
    memmove(w->aborts_ms, w->aborts_ms + 1, sizeof(w->aborts_ms) - sizeof(w->aborts_ms[0]));
    w->aborts_ms[SILT_WATCHDOG_ABORTS_MAX - 1] = now_ms;
    w->aborts++;
    return SILT_WATCHDOG_ABORT;
}

enum silt_watchdog_verdict silt_watchdog_judge(struct silt_watchdog *w,
                                               const struct silt_watchdog_look *look)
{
    struct silt_watchdog_look last = w->last;
    w->last = *look;
    if (look->count != last.count || !w->began) { /* it may start as slowly as it likes */
        w->began = w->began || look->count != last.count;
        start_over(w);
        return SILT_WATCHDOG_FINE;
    }
    w->stood_ms += stood_since(&last, look);
    if (w->stood_ms >= SILT_WATCHDOG_ABORT_MS && !w->judged)
        return abort_or_leave(w, look->now_ms);
    if (w->stood_ms < SILT_WATCHDOG_TELL_MS || w->told)
        return SILT_WATCHDOG_FINE;
    w->told = true;
    return SILT_WATCHDOG_TELL;
}

/* Sampling. */

static bool read_proc(pid_t pid, const char *name, char out[PROC_MAX])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    silt_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, PROC_MAX - 1) : -1;
    out[n > 0 ? n : 0] = 0;
    while (n > 0 && out[n - 1] == '\n')
        out[--n] = 0;
    return n > 0;
}

static bool look_at(const struct silt_watchdog *w, struct silt_watchdog_look *ret)
{
    char text[PROC_MAX];
    silt_slice rest, ran, waited;
    struct silt_error e;
    *ret = (struct silt_watchdog_look){.now_ms = silt_clock_ms(),
                                       .count = atomic_load(&w->pulse->count)};
    if (!read_proc(w->pid, "stat", text) || strrchr(text, ')') == NULL
        || strlen(strrchr(text, ')')) < 3)
        return false;
    ret->state = strrchr(text, ')')[2];
    if (!read_proc(w->pid, "schedstat",
                   text)) /* of the main thread: /proc/PID/schedstat is not a sum */
        return false;
    rest = silt_slice_of(text);
    return silt_slice_split(&rest, ' ', &ran) && silt_slice_split(&rest, ' ', &waited)
           && silt_slice_to_u64(ran, 0, UINT64_MAX, &ret->cpu_ns, &e) == 0
           && silt_slice_to_u64(waited, 0, UINT64_MAX, &ret->delay_ns, &e) == 0;
}

/* Acting. */

static void tell_where(const struct silt_watchdog *w)
{
    char stack[PROC_MAX], call[PROC_MAX], channel[PROC_MAX];
    (void)read_proc(w->pid, "stack", stack);
    (void)read_proc(w->pid, "syscall", call);
    (void)read_proc(w->pid, "wchan", channel);
    for (char *p = stack; *p != 0; p++)
        *p = *p == '\n' ? ';' : *p;
    silt_log(SILT_LOG_ERROR, "siltd.stands",
             "pid=%d ms=%lld state=%c wchan=%.64s syscall=\"%.200s\" stack=\"%.1500s\"", w->pid,
             (long long)w->stood_ms, w->last.state, channel, call, stack);
}

static void end_siltd(const struct silt_watchdog *w)
{
    silt_log(SILT_LOG_ERROR, "siltd.abort", "pid=%d ms=%lld aborts=%llu", w->pid,
             (long long)w->stood_ms, (unsigned long long)w->aborts);
    w->pulse->aborts = w->aborts;
    (void)kill(w->pid, SIGABRT); /* not reaped yet: the pid is still its own */
}

static void on_look(struct silt_timer *t)
{
    struct silt_watchdog *w = silt_outer(t, struct silt_watchdog, timer);
    struct silt_watchdog_look look;
    silt_loop_after(w->loop, &w->timer, SILT_WATCHDOG_LOOK_MS);
    if (!look_at(w, &look))
        return;
    bool stood = w->told;
    switch (silt_watchdog_judge(w, &look)) {
    case SILT_WATCHDOG_FINE:
        if (stood && !w->told)
            silt_log(SILT_LOG_WARN, "siltd.moves", "pid=%d", w->pid);
        return;
    case SILT_WATCHDOG_TELL:
        tell_where(w);
        return;
    case SILT_WATCHDOG_ABORT:
        end_siltd(w);
        return;
    case SILT_WATCHDOG_LEAVE:
        silt_log(SILT_LOG_ERROR, "siltd.left",
                 "pid=%d ms=%lld aborts=%d in the last five minutes: it is left as it is", w->pid,
                 (long long)w->stood_ms, SILT_WATCHDOG_ABORTS_MAX);
        return;
    }
}

/* Sealed: siltd, which faces the network, cannot truncate the page under us. */
static int open_pulse(struct silt_watchdog *w, struct silt_error *e)
{
    silt_auto_fd fd = memfd_create("silt-pulse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, sizeof(*w->pulse)) < 0
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return silt_fail_errno(e, "make siltd's pulse");
    void *map = mmap(NULL, sizeof(*w->pulse), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return silt_fail_errno(e, "map siltd's pulse");
    w->pulse = map;
    w->fd = silt_take_fd(&fd);
    return 0;
}

int silt_watchdog_open(struct silt_watchdog *w, struct silt_loop *loop, struct silt_error *e)
{
    *w = (struct silt_watchdog){.loop = loop, .timer = {.on_time = on_look}, .fd = -1};
    return open_pulse(w, e);
}

void silt_watchdog_close(struct silt_watchdog *w)
{
    silt_watchdog_follow(w, 0);
    (void)munmap(w->pulse, sizeof(*w->pulse));
    silt_close_fd(&w->fd);
}

void silt_watchdog_follow(struct silt_watchdog *w, pid_t pid)
{
    w->pid = pid;
    w->last = (struct silt_watchdog_look){.now_ms = silt_clock_ms(),
                                          .count = atomic_load(&w->pulse->count)};
    w->began = w->judged = false;
    start_over(w);
    silt_loop_cancel(w->loop, &w->timer);
    if (pid > 0)
        silt_loop_after(w->loop, &w->timer, SILT_WATCHDOG_LOOK_MS);
}
