/* SPDX-License-Identifier: Apache-2.0 */
/* watch: reports changes to files in a sandbox, observed by a worker process inside it. Identical
 * requests share one watch, which lives while it has listeners or is polled for changes now and
 * then. Runs in siltd; owned by the sandbox. */
#pragma once

#include "sandbox/file/worker_pool.h"

enum {
    SILT_WATCH_ID_SIZE = 48,
    SILT_WATCH_KEPT_MS = 600000, /* without listeners, after the last poll */
    SILT_WATCH_DEFAULT = SILT_WATCH_CREATE | SILT_WATCH_MODIFY | SILT_WATCH_DELETE
                         | SILT_WATCH_MOVE_FROM | SILT_WATCH_MOVE_TO,
};

struct silt_file_watch;

struct silt_file_watch_request {
    silt_slice path; /* absolute, no NUL */
    bool recursive;
    bool include;        /* the patterns select events; otherwise they exclude them */
    uint32_t events;     /* SILT_WATCH_… */
    silt_slice patterns; /* sorted, each NUL-terminated */
};

struct silt_listener { /* borrowed: must outlive the watch, or leave it */
    struct silt_link link;
    struct silt_file_watch *file_watch;     /* borrowed; NULL: not listening */
    void (*ready)(struct silt_listener *l); /* the watch is established */
    /* One of SILT_WATCH_CREATE … ATTRIB, OVERFLOW or LIMIT. */
    void (*event)(struct silt_listener *l, uint32_t what, bool is_dir, silt_slice path);
    /* Once, last. SILT_NOT_FOUND after `ready`: the watched path is gone. */
    void (*ended)(struct silt_listener *l, const struct silt_error *e);
};

/* The sandbox must run. No callback is called before it returns. *ret_is_new: the watch did not
 * exist before. */
int silt_file_watch_join(struct silt_sandbox *s, const struct silt_file_watch_request *q,
                         struct silt_listener *l, bool *ret_is_new, struct silt_error *e);
void silt_file_watch_leave(struct silt_listener *l); /* no-op if it has ended */
/* Keeps the watch for SILT_WATCH_KEPT_MS from now, even without listeners. */
void silt_file_watch_keep(struct silt_file_watch *w);

const char *silt_file_watch_id(const struct silt_file_watch *w); /* watch-<n>-<ms> */
bool silt_file_watch_is_ready(const struct silt_file_watch *w);
uint64_t silt_file_watch_count(const struct silt_file_watch *w); /* events so far */
/* True if the kernel ran out of watches: some changes go unseen. */
bool silt_file_watch_is_partial(const struct silt_file_watch *w);

/* For this room. */
/* Before another long-lived worker starts: ends watches without listeners. */
void silt_file_watch_make_room(struct silt_sandbox *s);

extern const struct silt_facet silt_watch_facet;
