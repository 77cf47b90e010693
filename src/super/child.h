/* SPDX-License-Identifier: Apache-2.0 */
/* child: what silt-super knows about each of its programs, and its talk with them
 * (wire/super.h). Private to this folder: super.c starts and ends them, child.c talks. */
#pragma once

#include "event/loop.h"
#include "super/certificate.h"
#include "super/keep.h"
#include "super/outlook.h"
#include "super/super.h"
#include "super/watchdog.h"
#include "wire/super.h"

#include <sys/types.h>

struct silt_child {
    struct silt_super *super; /* borrowed */
    enum silt_program which;
    const char *name;
    pid_t pid;                     /* 0: not running */
    int channel;                   /* ours, to it; -1: none */
    int ends[SILT_SUPER_PAIR_MAX]; /* of each pair it is in, not yet handed over; -1: none */
    struct silt_watch watch;
    struct silt_timer restart;
    int64_t started_ms;
    int64_t backoff_ms;
    unsigned early_deaths;
};

/*  STARTING --siltd is ready--> SERVING
 *      \----------signal----------+--> DRAINING --siltd ended--> SETTLING --silt-priv is awake-->
 *      \---too many early deaths--/    SWEEPING --silt-priv ended--> ENDED                      */
enum silt_instance_state {
    SILT_INSTANCE_STARTING,
    SILT_INSTANCE_SERVING,
    SILT_INSTANCE_DRAINING,
    SILT_INSTANCE_SETTLING,
    SILT_INSTANCE_SWEEPING,
    SILT_INSTANCE_ENDED
};

struct silt_super {
    const struct silt_super_birth *birth; /* borrowed */
    struct silt_loop loop;
    enum silt_instance_state state;
    int status; /* to exit with */
    struct silt_child programs[SILT_PROGRAM_MAX];
    struct silt_keep keep;
    uint32_t next_kept; /* what the new siltd gets next; keep.count: KEPT_ALL; beyond: all told */
    uint32_t next_context; /* of that sandbox: 0: it itself, then its contexts */
    uint32_t next_listener; /* before all of these */
    struct silt_watch signals;
    struct silt_timer deadline;
    struct silt_outlook outlook;
    struct silt_certificate certificate;
    struct silt_watchdog watchdog;
};

/* Its channel is there: begins to talk. What waits to be said goes out first. */
void silt_child_greet(struct silt_child *p);
void silt_child_pump(struct silt_child *p);
void silt_child_hang_up(struct silt_child *p);
void silt_child_signal(const struct silt_child *p, int signo); /* fine when it does not run */
/* super.c: siltd says that it serves. */
void silt_super_on_ready(struct silt_super *s);
