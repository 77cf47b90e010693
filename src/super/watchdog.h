/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog: notices, in silt-super, that siltd's loop stands still, writes down where, and ends siltd with SIGABRT
 * when that lasts, so that it is started again. siltd counts in memory that both share (wire/super.h). Time that
 * siltd waits for a processor, is stopped by a debugger or an operator, or in which silt-super itself did not
 * run, does not count against it. */
#pragma once

#include "event/loop.h"
#include "wire/super.h"

#include <sys/types.h>

enum { SILT_WATCHDOG_ABORTS_MAX = 3 }; /* in SILT_WATCHDOG_WINDOW_MS: then siltd is left as it is */
enum {
    SILT_WATCHDOG_LOOK_MS = SILT_SUPER_PULSE_MS,
    SILT_WATCHDOG_TELL_MS = 2000,
    SILT_WATCHDOG_ABORT_MS = 10000,
    SILT_WATCHDOG_WINDOW_MS = 5 * 60 * 1000,
};

/* What a look at siltd's main thread shows. */
struct silt_watchdog_look {
    int64_t now_ms;
    uint64_t count;    /* siltd's */
    char state;        /* as in /proc/PID/stat */
    uint64_t cpu_ns;   /* it has run */
    uint64_t delay_ns; /* it has waited for a processor */
};

enum silt_watchdog_verdict {
    SILT_WATCHDOG_FINE,
    SILT_WATCHDOG_TELL,  /* it stands: once */
    SILT_WATCHDOG_ABORT, /* for too long: once in a life */
    SILT_WATCHDOG_LEAVE, /* as before, but this has happened too often: once in a life */
};

struct silt_watchdog {
    struct silt_loop *loop; /* borrowed */
    struct silt_timer timer;
    struct silt_super_pulse *pulse; /* shared with siltd */
    int fd;                         /* of it: what each siltd is born with */
    pid_t pid;                      /* of siltd; 0: none */
    struct silt_watchdog_look last;
    int64_t stood_ms;
    bool began; /* this siltd has counted */
    bool told;
    bool judged; /* ABORT or LEAVE was said in this life */
    int64_t aborts_ms[SILT_WATCHDOG_ABORTS_MAX]; /* when the last ones were; 0: never */
    uint64_t aborts;
};

int silt_watchdog_open(struct silt_watchdog *w, struct silt_loop *loop, struct silt_error *e);
void silt_watchdog_close(struct silt_watchdog *w); /* before the loop */
/* A siltd is born; 0: it is gone. */
void silt_watchdog_follow(struct silt_watchdog *w, pid_t pid);
/* One look, every SILT_WATCHDOG_LOOK_MS. Apart from the rest for tests. */
enum silt_watchdog_verdict silt_watchdog_judge(struct silt_watchdog *w, const struct silt_watchdog_look *look);
