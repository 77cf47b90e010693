/* SPDX-License-Identifier: Apache-2.0 */
/* handle: one cgroup for one session or process, so that everything it started can be found and
 * killed. siltd sends handles as descriptors (wire/agent.h); they are reused once empty, which is
 * checked only when one is needed. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "wire/agent.h"

#include <sys/types.h>

enum silt_handle_state {
    SILT_HANDLE_FREE,
    SILT_HANDLE_USED,
    SILT_HANDLE_LEFT, /* its owner is done; it may still contain processes */
};

struct silt_handle {
    enum silt_handle_state state;
    int mode; /* cgroup version: 1 or 2 */
    int fds[SILT_HANDLE_FDS_V2];
    bool killed;      /* v2: was killed as a whole at least once */
    bool swept;       /* LEFT: being emptied, not to be reused yet */
    uint64_t session; /* LEFT: session of its command; 0: none */
};

/* Embedded in an object that waits for a handle. Exactly one callback is called, unless it stops
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
    bool asked; /* siltd was asked for more */
    bool full;  /* a wait timed out and no handle was freed since: others need not wait */
    void (*on_need)(struct silt_handles *all, unsigned how_many);
    void (*on_wait)(struct silt_handles *all); /* an object has to wait: can a handle be freed? */
};

enum { SILT_HANDLE_WAIT_MS = 5000 };

void silt_handles_init(struct silt_handles *all, struct silt_loop *loop, int mode);
/* Takes all descriptors; closes incomplete handles and those above the maximum. */
void silt_handles_add(struct silt_handles *all, const int *fds, size_t count);
/* A free handle that nothing waits for, or NULL. */
struct silt_handle *silt_handles_try(struct silt_handles *all);
/* A free handle at once, or NULL: then w waits. */
struct silt_handle *silt_handles_want(struct silt_handles *all, struct silt_handle_wait *w);
void silt_handle_stop_waiting(struct silt_handle_wait *w); /* fine if not waiting */
void silt_handles_ask_again(struct silt_handles *all);     /* a new siltd is connected */
/* a process died: a handle may have become empty */
void silt_handles_poke(struct silt_handles *all);
/* `session` as in the handle. */
void silt_handle_leave(struct silt_handles *all, struct silt_handle *h, uint64_t session);

/* Visits the ids of all threads (v1) or processes (v2) inside, in this pid namespace, until a visit
 * returns false. -1 if the list cannot be read. */
int silt_handle_visit(const struct silt_handle *h, bool (*visit)(void *arg, pid_t id), void *arg);
bool silt_handle_is_empty(const struct silt_handle *h);
/* True if a process inside is running or runnable; false if all are waiting. */
bool silt_handle_is_restless(const struct silt_handle *h);
void silt_handle_signal(struct silt_handle *h, int signal);
/* v1 only; v2 kills the group as a whole. */
void silt_handle_freeze(const struct silt_handle *h, bool frozen);
bool silt_handle_is_frozen(const struct silt_handle *h);

/* Runs in the child after fork. 0 or -1 with errno. Enters the handle, unless clone3 already
 * did. */
int silt_handle_enter(const struct silt_handle *h);
/* The same for a child that another process forked. May take a second when the guest's root is
 * hostile. */
int silt_handle_move(const struct silt_handle *h, pid_t pid);
