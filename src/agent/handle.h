/* SPDX-License-Identifier: Apache-2.0 */
/* handle: one cgroup for one session or process, so that everything it started, however it hid, can
 * be counted and killed. Handles come from siltd as descriptors (wire/agent.h) and are used again
 * once they are empty; that is looked at only when one is wanted. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "wire/agent.h"

#include <sys/types.h>

enum silt_handle_state {
    SILT_HANDLE_FREE,
    SILT_HANDLE_USED,
    SILT_HANDLE_LEFT, /* its owner is done with it; somebody may still live in it */
};

struct silt_handle {
    enum silt_handle_state state;
    int mode; /* of cgroups: 1 or 2 */
    int fds[SILT_HANDLE_FDS_V2];
    bool killed; /* v2: as one, once or more */
    bool swept;  /* LEFT: is being emptied, and not to be given away meanwhile */
    uint64_t session; /* LEFT: whose command it was; 0: of none */
};

/* Embedded in whoever waits for a handle. Exactly one of the two is called, unless it stops
 * waiting. */
struct silt_handle_wait {
    struct silt_link link;
    struct silt_timer timer;
    struct silt_handles *all; /* borrowed */
    void (*on_handle)(struct silt_handle_wait *w, struct silt_handle *h);
    void (*on_none)(struct silt_handle_wait *w);
};

struct silt_handles {
    struct silt_loop *loop; /* borrowed */
    int mode;
    size_t count;
    struct silt_handle list[SILT_HANDLES_MAX];
    struct silt_link waits;
    bool asked; /* siltd owes us some */
    bool full;  /* somebody waited in vain, and none has come free since: others need not wait */
    void (*on_need)(struct silt_handles *all, unsigned how_many);
    void (*on_wait)(struct silt_handles *all); /* somebody has to: can one be given back? */
};

enum { SILT_HANDLE_WAIT_MS = 5000 };

void silt_handles_init(struct silt_handles *all, struct silt_loop *loop, int mode);
/* Takes all descriptors; closes those that make no whole handle or are too many. */
void silt_handles_add(struct silt_handles *all, const int *fds, size_t count);
/* One that is free, and for which nobody waits; or NULL. */
struct silt_handle *silt_handles_try(struct silt_handles *all);
/* A free handle at once, or NULL: then w waits. */
struct silt_handle *silt_handles_want(struct silt_handles *all, struct silt_handle_wait *w);
void silt_handle_stop_waiting(struct silt_handle_wait *w); /* fine when not waiting */
void silt_handles_ask_again(struct silt_handles *all);     /* there is a new siltd */
void silt_handles_poke(struct silt_handles *all); /* somebody died: one may have become empty */
/* `session` as in the handle. */
void silt_handle_leave(struct silt_handles *all, struct silt_handle *h, uint64_t session);

/* Visits the ids of all threads (v1) or processes (v2) inside, as this namespace numbers them,
 * until a visit answers false. -1 when the list cannot be read. */
int silt_handle_visit(const struct silt_handle *h, bool (*visit)(void *arg, pid_t id), void *arg);
bool silt_handle_is_empty(const struct silt_handle *h);
/* Somebody inside is running or about to; everybody else waits for something. */
bool silt_handle_is_restless(const struct silt_handle *h);
void silt_handle_signal(struct silt_handle *h, int signal);
/* v1 only; v2 kills as one. */
void silt_handle_freeze(const struct silt_handle *h, bool frozen);
bool silt_handle_is_frozen(const struct silt_handle *h);

/* After fork, in the child. 0 or -1 with errno. Enters the handle, unless clone3 already did. */
int silt_handle_enter(const struct silt_handle *h);
