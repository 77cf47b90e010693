/* SPDX-License-Identifier: Apache-2.0 */
/* loop: one epoll loop per process. Watches and timers are embedded in their owners; callbacks
 * never block. Callbacks bury ended objects instead of freeing them, because an event still queued
 * in this turn can reach them. Also used by silt-init, the static PID 1, so it allocates only its
 * timer heap. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct silt_loop;

struct silt_watch {
    int fd;          /* borrowed; -1: not watching */
    uint32_t events; /* requested events; 0: not watching */
    uint32_t serial; /* set by the loop: tells this watch from an earlier one of the same fd */
    void (*on_ready)(struct silt_watch *w, uint32_t events);
};

struct silt_timer {
    int64_t at_ms;
    size_t place; /* index in the heap, from 1; 0: not running */
    void (*on_time)(struct silt_timer *t);
};

/* Embedded in an object that a callback may bury. */
struct silt_grave {
    struct silt_grave *next;
    void (*free)(struct silt_grave *g);
};

struct silt_loop {
    int epoll;
    bool stopping;
    int64_t now_ms; /* time at the start of this turn */
    uint64_t turns; /* so far */
    struct silt_timer **heap;
    size_t timers, heap_cap;
    struct silt_grave *graves;
    struct silt_watch **live; /* by fd: its current watch */
    size_t live_cap;
    uint32_t serials; /* serials given out so far */
};

int silt_loop_open(struct silt_loop *l, struct silt_error *e);
void silt_loop_close(struct silt_loop *l);
int silt_loop_run(struct silt_loop *l, struct silt_error *e); /* returns after silt_loop_stop */
int silt_loop_turn(struct silt_loop *l, int timeout_ms,
                   struct silt_error *e); /* one batch of events; for tests */
void silt_loop_stop(struct silt_loop *l);

/* Adds, changes or (events 0) removes a watch. Level-triggered. Aborts if the kernel refuses: that
 * is our bug. */
void silt_loop_watch(struct silt_loop *l, struct silt_watch *w, uint32_t events);
/* Call before closing the fd. */
void silt_loop_forget(struct silt_loop *l, struct silt_watch *w);

void silt_loop_after(struct silt_loop *l, struct silt_timer *t,
                     int64_t ms);                                 /* starts or restarts */
void silt_loop_cancel(struct silt_loop *l, struct silt_timer *t); /* no effect if not running */

/* Calls g->free at the end of this turn; burying the same grave twice is a bug. */
void silt_loop_bury(struct silt_loop *l, struct silt_grave *g);
