/* SPDX-License-Identifier: Apache-2.0 */
/* kill_tree: kills everything in a handle until it is empty, even if it forks as fast as it is
 * killed; optionally signals it first. Checks again whenever a process dies, and after growing
 * pauses. */
#pragma once

#include "agent/spawn/handle.h"

/* Ids of threads or processes. */
struct silt_id_set {
    pid_t *ids; /* owned */
    size_t count;
};
enum { SILT_ID_SET_MAX = 4096 };
/* The ids in the handle now; those that do not fit are left out. */
void silt_id_set_take(struct silt_id_set *s, const struct silt_handle *h);
void silt_id_set_remove(struct silt_id_set *s, pid_t id);
void silt_id_set_free(struct silt_id_set *s);

struct silt_kill_tree {
    struct silt_link link; /* in the list of running kill_trees */
    struct silt_loop *loop;
    struct silt_handle *handle;     /* borrowed */
    const struct silt_id_set *keep; /* borrowed: these and their children survive; NULL: none */
    /* alternative to keep: asked for each id; may be NULL */
    bool (*spares)(struct silt_kill_tree *p, pid_t id);
    struct silt_timer timer;
    int64_t since_ms; /* when killing began, or will begin */
    bool gentle;      /* killing has not begun yet */
    bool forced;      /* not all obeyed the signal: they were killed */
    int signal;       /* the one sent first */
    bool frozen;
    bool running; /* also while gentle */
    void (*on_clean)(struct silt_kill_tree *p);
};

/* Kills at once; on_clean is called later, from the loop. Ends a grace period. */
void silt_kill_tree_start(struct silt_kill_tree *p, struct silt_link *running);
/* Sends the signal now and kills what is left after grace_ms, or after the rest of an earlier grace
 * period. */
void silt_kill_tree_gently(struct silt_kill_tree *p, struct silt_link *running, int signal,
                           int64_t grace_ms);
void silt_kill_tree_stop(struct silt_kill_tree *p); /* fine if not running */
void silt_kill_tree_poke(struct silt_link *running);
