/* SPDX-License-Identifier: Apache-2.0 */
/* child: silt-super's state of each of its programs and the messages to them (wire/super.h).
 * Private to this directory: super.c starts and stops programs, child.c exchanges messages. */
#pragma once

#include "event/loop.h"
#include "super/certificate.h"
#include "super/fd_store.h"
#include "super/route_watch.h"
#include "super/super.h"
#include "super/watchdog.h"
#include "wire/super.h"

#include <sys/types.h>

struct silt_child {
    struct silt_super *super; /* borrowed */
    enum silt_program which;
    const char *name;
    pid_t pid;                     /* 0: not running */
    int channel;                   /* our end; -1: none */
    int ends[SILT_SUPER_PAIR_MAX]; /* of each pair it takes part in, not yet sent; -1: none */
    struct silt_watch watch;
    struct silt_timer restart;
    int64_t started_ms;
    int64_t backoff_ms;
    unsigned early_deaths;
};

/*   STARTING --siltd is ready--> SERVING --reload--> HANDING_OVER --programs ended--> execve
 *       \----------signal----------+--> DRAINING --siltd ended--> SETTLING --silt-priv is awake-->
 *       \---too many early deaths--/    SWEEPING --silt-priv ended--> ENDED */
enum silt_instance_state {
    SILT_INSTANCE_STARTING,
    SILT_INSTANCE_SERVING,
    SILT_INSTANCE_HANDING_OVER, /* where execve fails: STARTING */
    SILT_INSTANCE_DRAINING,
    SILT_INSTANCE_SETTLING,
    SILT_INSTANCE_SWEEPING,
    SILT_INSTANCE_ENDED
};

struct silt_super {
    const struct silt_super_birth *birth; /* borrowed */
    struct silt_loop loop;
    enum silt_instance_state state;
    int status; /* exit status */
    struct silt_child programs[SILT_PROGRAM_MAX];
    struct silt_fd_store keep;
    /* next slot to send to the new siltd; keep.count: KEPT_ALL; beyond: all sent */
    uint32_t next_kept;
    uint32_t next_context;  /* within that sandbox: 0: the sandbox itself, then its contexts */
    uint32_t next_listener; /* sent before all of these */
    struct silt_watch signals;
    struct silt_timer deadline;
    struct silt_route_watch outlook;
    struct silt_certificate certificate;
    struct silt_watchdog watchdog;
    bool resumed; /* sandboxes of before the last start of the programs run */
    /* super/reload.h */
    bool leaving;                  /* HANDING_OVER: all programs have been told to end */
    bool reloading;                /* a result is due */
    bool reload_asked, stop_asked; /* by signals that have to wait */
    pid_t check;                   /* 0: none runs */
    struct silt_timer check_late;
};

/* The program's channel is open: starts the exchange. Queued messages go out first. */
void silt_child_greet(struct silt_child *p);
void silt_child_pump(struct silt_child *p);
/* Reads what it sent before it died. */
void silt_child_drain(struct silt_child *p);
void silt_child_hang_up(struct silt_child *p);
void silt_child_signal(const struct silt_child *p, int signo); /* fine if it does not run */
/* In super.c: siltd reports that it serves requests. */
void silt_super_on_ready(struct silt_super *s);
