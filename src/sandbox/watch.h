/* SPDX-License-Identifier: Apache-2.0 */
/* watch: what happens to files of a sandbox, seen by a worker inside it. Identical requests share
 * one worker. It lives as long as somebody listens, or asks now and then whether anything has
 * changed. */
#pragma once

#include "sandbox/work.h"

enum {
    SILT_WATCH_ID_SIZE = 48,
    SILT_WATCH_KEPT_MS = 600000, /* without listeners, after the last question */
    SILT_WATCH_DEFAULT = SILT_WATCH_CREATE | SILT_WATCH_MODIFY | SILT_WATCH_DELETE
                         | SILT_WATCH_MOVE_FROM | SILT_WATCH_MOVE_TO,
};

struct silt_lookout;

struct silt_lookout_request {
    silt_slice path; /* absolute, no NUL */
    bool recursive;
    bool include;        /* the patterns name what is told; else what is not */
    uint32_t events;     /* SILT_WATCH_… */
    silt_slice patterns; /* sorted, each with its NUL */
};

struct silt_listener { /* borrowed: must outlive the watch, or leave it */
    struct silt_link link;
    struct silt_lookout *lookout;           /* borrowed; NULL: it listens to none */
    void (*ready)(struct silt_listener *l); /* the watch is established */
    /* One of SILT_WATCH_CREATE … ATTRIB, OVERFLOW or LIMIT. */
    void (*event)(struct silt_listener *l, uint32_t what, bool is_dir, silt_slice path);
    /* Once, last. SILT_NOT_FOUND after `ready`: the watched path is gone. */
    void (*ended)(struct silt_listener *l, const struct silt_error *e);
};

/* The sandbox runs. No callback comes from inside this call. *ret_is_new: nobody watched this yet.
 */
int silt_lookout_join(struct silt_sandbox *s, const struct silt_lookout_request *q,
                      struct silt_listener *l, bool *ret_is_new, struct silt_error *e);
void silt_lookout_leave(struct silt_listener *l); /* fine when it has ended */
/* It stays for SILT_WATCH_KEPT_MS from now, listeners or not. */
void silt_lookout_keep(struct silt_lookout *w);

const char *silt_lookout_id(const struct silt_lookout *w); /* watch-<n>-<ms> */
bool silt_lookout_is_ready(const struct silt_lookout *w);
uint64_t silt_lookout_count(const struct silt_lookout *w);  /* events so far */
bool silt_lookout_is_partial(const struct silt_lookout *w); /* watches ran out: not all is seen */

/* For this room. */
/* Before another worker of the long kind is asked for: watches that nobody listens to make room. */
void silt_lookout_make_room(struct silt_sandbox *s);
void silt_lookout_forget_all(struct silt_sandbox *s); /* the daemon ends */
