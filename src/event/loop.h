/* SPDX-License-Identifier: Apache-2.0 */
/* loop: one epoll loop per process. Watches and timers are embedded in what they belong to; callbacks
 * never block. What a callback ends is buried, not freed: an event still queued in this turn can
 * reach a dying object. Used by siltd and by the static PID 1, so it allocates only its timer heap. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct silt_loop;

struct silt_watch {
    int fd;          /* borrowed; -1: not watching */
    uint32_t events; /* what is asked for; 0: not watching */
    uint32_t serial; /* the loop's: tells it from an earlier watch of the same number */
    void (*on_ready)(struct silt_watch *w, uint32_t events);
};

struct silt_timer {
    int64_t at_ms;
    size_t place; /* in the heap, from 1; 0: not running */
    void (*on_time)(struct silt_timer *t);
};

/* Embedded in an object that a callback may end. */
struct silt_grave {
    struct silt_grave *next;
    void (*free)(struct silt_grave *g);
};

struct silt_loop {
    int epoll;
    bool stopping;
    int64_t now_ms; /* of this turn */
    uint64_t turns; /* so far */
    struct silt_timer **heap;
    size_t timers, heap_cap;
    struct silt_grave *graves;
    struct silt_watch **live; /* by fd: who is watching it now */
    size_t live_cap;
    uint32_t serials; /* given to watches so far */
};

int silt_loop_open(struct silt_loop *l, struct silt_error *e);
void silt_loop_close(struct silt_loop *l);
int silt_loop_run(struct silt_loop *l, struct silt_error *e); /* until silt_loop_stop */
int silt_loop_turn(struct silt_loop *l, int timeout_ms, struct silt_error *e); /* one batch; tests */
void silt_loop_stop(struct silt_loop *l);

/* Adds, changes or (events 0) removes. Level-triggered. Aborts when the kernel refuses: our bug. */
void silt_loop_watch(struct silt_loop *l, struct silt_watch *w, uint32_t events);
/* Must come before the fd is closed. */
void silt_loop_forget(struct silt_loop *l, struct silt_watch *w);

void silt_loop_after(struct silt_loop *l, struct silt_timer *t, int64_t ms); /* (re)starts */
void silt_loop_cancel(struct silt_loop *l, struct silt_timer *t);            /* fine when not running */

/* Calls g->free when this turn is over; a second bury of the same grave is a bug. */
void silt_loop_bury(struct silt_loop *l, struct silt_grave *g);
