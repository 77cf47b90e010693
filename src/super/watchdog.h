/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog: runs in silt-super, detects that siltd's event loop is stuck, logs where, and aborts
 * siltd (SIGABRT) if it stays stuck, so that it is restarted. siltd increments a counter in shared
 * memory (wire/super.h). Time in which siltd waits for a CPU, is stopped by a debugger or an
 * operator, or in which silt-super itself did not run does not count. */
#pragma once

#include "event/loop.h"
#include "wire/super.h"

#include <sys/types.h>

/* within SILT_WATCHDOG_WINDOW_MS: then siltd is left alone */
enum { SILT_WATCHDOG_ABORTS_MAX = 3 };
enum {
    SILT_WATCHDOG_LOOK_MS = SILT_SUPER_PULSE_MS,
    SILT_WATCHDOG_TELL_MS = 2000,
    SILT_WATCHDOG_ABORT_MS = 10000,
    SILT_WATCHDOG_WINDOW_MS = 5 * 60 * 1000,
};

/* A sample of siltd's main thread. */
struct silt_watchdog_look {
    int64_t now_ms;
    uint64_t count;    /* siltd's */
    char state;        /* as in /proc/PID/stat */
    uint64_t cpu_ns;   /* CPU time used */
    uint64_t delay_ns; /* time spent waiting for a CPU */
};

enum silt_watchdog_verdict {
    SILT_WATCHDOG_FINE,
    SILT_WATCHDOG_TELL,  /* stuck: reported once */
    SILT_WATCHDOG_ABORT, /* stuck for too long: once per siltd process */
    SILT_WATCHDOG_LEAVE, /* likewise, but after too many aborts: once per siltd process */
};

struct silt_watchdog {
    struct silt_loop *loop; /* borrowed */
    struct silt_timer timer;
    struct silt_super_pulse *pulse; /* shared with siltd */
    int fd;                         /* of pulse: passed to each siltd */
    pid_t pid;                      /* of siltd; 0: none */
    struct silt_watchdog_look last;
    int64_t stood_ms;
    bool began; /* this siltd has started counting */
    bool told;
    bool judged;                                 /* ABORT or LEAVE was returned for this process */
    int64_t aborts_ms[SILT_WATCHDOG_ABORTS_MAX]; /* times of the last aborts; 0: never */
    uint64_t aborts;
};

int silt_watchdog_open(struct silt_watchdog *w, struct silt_loop *loop, struct silt_error *e);
void silt_watchdog_close(struct silt_watchdog *w); /* call before closing the loop */
/* A siltd was started; 0: it is gone. */
void silt_watchdog_follow(struct silt_watchdog *w, pid_t pid);
/* Judges one sample, every SILT_WATCHDOG_LOOK_MS. Separate for tests. */
enum silt_watchdog_verdict silt_watchdog_judge(struct silt_watchdog *w,
                                               const struct silt_watchdog_look *look);
