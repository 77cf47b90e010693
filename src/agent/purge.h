/* SPDX-License-Identifier: Apache-2.0 */
/* purge: kill what is in a handle until nothing of it is left, also when it forks as fast as it is
 * killed; or ask it to end first. Looks again when somebody died and after growing pauses. */
#pragma once

#include "agent/handle.h"

/* Ids of threads or processes. */
struct silt_id_set {
    pid_t *ids; /* owned */
    size_t count;
};
enum { SILT_ID_SET_MAX = 4096 };
/* Who is in the handle now; what does not fit is left out. */
void silt_id_set_take(struct silt_id_set *s, const struct silt_handle *h);
void silt_id_set_remove(struct silt_id_set *s, pid_t id);
void silt_id_set_free(struct silt_id_set *s);

struct silt_purge {
    struct silt_link link; /* in the list of running purges */
    struct silt_loop *loop;
    struct silt_handle *handle;     /* borrowed */
    const struct silt_id_set *keep; /* borrowed: they and their children stay; NULL: nobody */
    bool (*spares)(struct silt_purge *p, pid_t id); /* instead: asked about each; may be NULL */
    struct silt_timer timer;
    int64_t since_ms; /* killing began, or is going to */
    bool gentle;      /* it has not begun yet */
    bool forced;      /* not all heeded the signal: they were killed */
    int signal;       /* that was sent first */
    bool frozen;
    bool running; /* also while gentle */
    void (*on_clean)(struct silt_purge *p);
};

/* Kills at once; on_clean comes later, from the loop. One that is gentle is so no more. */
void silt_purge_start(struct silt_purge *p, struct silt_link *running);
/* Sends the signal now and kills what is left after that time, or after what is left of the time
 * that it was given before. */
void silt_purge_gently(struct silt_purge *p, struct silt_link *running, int signal,
                       int64_t grace_ms);
void silt_purge_stop(struct silt_purge *p); /* fine when not running */
void silt_purge_poke(struct silt_link *running);
