/* SPDX-License-Identifier: Apache-2.0 */
/* registry: every sandbox siltd knows, the ready ones that wait for a name, and the images. The
 * first use of an id creates its sandbox; after a restart of siltd running sandboxes are found
 * again. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ip_prefix.h"
#include "event/loop.h"
#include "event/worker.h"
#include "priv/ask.h"
#include "sandbox/core/disk_pool.h"
#include "sandbox/core/ready_pool.h"
#include "sandbox/core/fair_queue.h"
#include "sandbox/core/journal.h"
#include "sandbox/core/tcp_memory.h"
#include "sandbox/core/timing.h"
#include "store/store.h"

struct silt_sandbox;
struct silt_image;
struct silt_containers;
struct silt_super_note;

struct silt_super_notes { /* sandbox/core/super.c */
    struct silt_link unsent;
    struct silt_timer retry;
    uint32_t count;
};

struct silt_preview_settings {
    const char *domain; /* borrowed, for ever; "": previews are off */
    bool https;
    bool short_tokens, old_form, paths, localhost_host;
};

struct silt_registry_settings {
    uint32_t slots;
    uint32_t ready;             /* how many sandboxes to keep ready */
    uint32_t agent_deadline_ms; /* 0: none */
    uint64_t output_max;        /* output of one code execution */
    uint32_t spares;            /* Node processes kept per sandbox for its next contexts */
    int64_t spare_idle_ms;      /* how long they are kept */
    uint32_t zygotes;           /* warm Pythons in silt-priv */
    char image[SILT_IMAGE_NAME_SIZE];
    uint32_t build_steps;     /* cached build steps */
    uint32_t build_timeout_s; /* of one step */
    uint64_t build_context_max;
    uint32_t pull_timeout_s; /* of a pull from a registry */
    uint32_t pull_silence_s; /* longest pause in the transfer */
    uint64_t pull_max;       /* bytes fetched */
    const char *insecure;    /* borrowed, for ever: registries without TLS, separated by commas */
    silt_slice authorities;  /* borrowed, for ever: additional CAs, PEM */
    const char *image_map;   /* borrowed, for ever: silt_image_check_map */
    char type[SILT_TYPE_SIZE];
    int64_t sleep_after_s, stop_after_s; /* of sandboxes created without a choice */
    enum silt_net_mode network;          /* of sandboxes created without a choice */
    const char *allow;               /* borrowed, for ever: its rules, one per line; may be NULL */
    struct silt_ip_prefix_list open; /* exceptions to the closed networks */
    struct silt_preview_settings preview;
};

enum {
    SILT_AUTHORITIES_MAX = 1 << 20,    /* settings.authorities, plus one */
    SILT_UNSTARTED_MAX = 256 << 20,    /* commands and code not started yet */
    SILT_UNSENT_EACH_MAX = 64 << 20,   /* code that one sandbox's interpreters have not read yet */
    SILT_UNSENT_MAX = 512 << 20,       /* of all sandboxes */
    SILT_ANSWERS_EACH_MAX = 128 << 20, /* responses of one sandbox being collected */
    SILT_ANSWERS_MAX = 512 << 20,      /* of all sandboxes */
};

struct silt_registry_counts {
    uint64_t created, destroyed, deaths, claims, cold_starts, execs, oom_kills;
    uint64_t out_bytes;
};

struct silt_registry {
    struct silt_loop *loop;     /* borrowed */
    struct silt_store *store;   /* borrowed */
    struct silt_priv_ask *priv; /* borrowed */
    struct silt_worker *worker; /* borrowed */
    int super;                  /* borrowed: channel to silt-super */
    struct silt_super_notes notes;
    const struct silt_facets *facets; /* borrowed: sandbox/core/facet.h */
    struct silt_egress *egress;       /* channel to silt-proxy, role egress */
    struct silt_intercepts *captures;
    struct silt_recovery *recovery;
    struct silt_preview *preview;       /* channel to silt-proxy, role preview */
    struct silt_containers *containers; /* of the engine socket; NULL: it is off */
    struct silt_registry_settings settings;
    struct silt_priv_limits default_limits; /* of settings.type */
    struct silt_map by_id;
    struct silt_sandbox **by_slot; /* settings.slots pointers; NULL: free */
    uint32_t next_slot;            /* round robin, so that a number is not reused at once */
    uint32_t slots_used;
    struct silt_ready_pool ready;
    uint32_t cold_starts;       /* clients wait for these: refilling the ready pool comes second */
    uint32_t contexts_starting; /* likewise, while enough sandboxes are ready */
    struct silt_timer upkeep;
    struct silt_link images; /* struct silt_image */
    uint32_t image_count;
    struct silt_map images_by_digest, image_names;
    struct silt_map
        snapshots;          /* struct silt_image by id of the snapshot: sandbox/image/snapshot.c */
    struct silt_link steps; /* sandbox/image/step_cache.c */
    struct silt_map steps_by_key;
    struct silt_link builds; /* struct silt_build */
    uint32_t build_count;
    struct silt_link pulls; /* struct silt_pull */
    uint32_t pull_count;
    /* In progress: sandbox/core/image.c, sandbox/image/{seal,fork}.c. */
    struct silt_link imports, forgets, seals, forks;
    struct silt_link net_asks;    /* in progress: sandbox/network/network.c */
    uint32_t stagings;            /* bit set of staging directories in use */
    uint32_t exports;             /* in progress: sandbox/image/export.c */
    size_t unstarted_bytes;       /* commands and code waiting to start */
    size_t unsent_bytes;          /* code that interpreters have not read yet */
    size_t answer_bytes;          /* responses collected until their code has ended */
    struct silt_link run_logs;    /* struct silt_run_log; ended ones by their end */
    size_t run_log_bytes;         /* events of runs, kept for clients that resume */
    struct silt_fair_queue lanes; /* for long lines from interpreters */
    struct silt_worker
        *parsers; /* borrowed; threads that parse these lines, so that file jobs need not wait */
    uint32_t open_logs; /* of processes */
    /* sandbox/process/log_follower.c: the loop turn that follow_bytes counts. */
    uint64_t follow_turn;
    uint64_t follow_bytes;
    uint64_t work_turn; /* sandbox/file/worker_pool.c: the loop turn that work_frames counts */
    uint64_t work_frames;
    uint64_t epoch;        /* of this run of siltd */
    uint64_t next_number;  /* of sessions and execs; unique across restarts */
    uint64_t next_cell;    /* of code in contexts; below 2^53, as JavaScript sees it too */
    uint64_t file_watches; /* file watches so far: part of their ids */
    bool rebooted, recovering;
    bool without_network; /* the last sandbox created got no network */
    struct silt_job checkpoint;
    bool checkpointing; /* a worker is doing it */
    struct silt_registry_counts counts;
    struct silt_timing timings[SILT_TIMING_MAX];
    struct silt_disk_pool pool;
    bool pool_full; /* reported by an event */
    int64_t pool_full_ms;
    struct silt_tcp_memory tcp_memory;
    struct silt_journal journal;
    struct silt_link unsaved_sessions; /* of sandboxes: sandbox/core/session.c */
    struct silt_timer save_sessions;
};

/* When a sandbox sleeps and ends. All zero: never, as for containers of the engine socket. */
struct silt_lifetime {
    int64_t sleep_after_s, stop_after_s; /* as in struct silt_sandbox_row */
    int64_t expires_ms;
    bool keep_alive, let_sleep, remove_after_stop, auto_snapshot;
};

/* A caller's choices for a new sandbox; slices are borrowed. */
struct silt_sandbox_options {
    silt_slice image;          /* empty: the default */
    char type[SILT_TYPE_SIZE]; /* empty with `limits` given */
    struct silt_priv_limits limits;
    silt_slice env;    /* NAME=value\0… */
    silt_slice labels; /* JSON object or empty */
    struct silt_lifetime life;
    bool ephemeral;
    enum silt_net_mode network;
    silt_slice allow; /* rules, one per line; mode allow */
    /* Mode captive: the number of its intercept (sandbox/network/intercept.h). */
    uint64_t capture;
};

/* Waits until a sandbox runs. Embedded in the request, which calls silt_waiter_leave when it
 * ends. */
struct silt_waiter {
    struct silt_link link;
    void (*on_ready)(struct silt_waiter *w, struct silt_sandbox *sandbox,
                     const struct silt_error *e);
};

/* Fills a new store from the recovery records (sandbox/core/recovery.h). Call before
 * silt_registry_open, while siltd may still block. `priv`, the channel to silt-priv, is borrowed
 * and not in use yet. */
int silt_registry_restore(struct silt_registry *r, int priv, struct silt_error *e);
int silt_registry_open(struct silt_registry *r, struct silt_error *e);
/* A descriptor pair that silt-super has kept for siltd; takes both. */
void silt_registry_adopt(struct silt_registry *r, uint32_t slot, int channel, int pidfd);
void silt_registry_adopted_all(struct silt_registry *r);
void silt_registry_close(struct silt_registry *r);

struct silt_sandbox *silt_registry_find(struct silt_registry *r, silt_slice id);
/* Calls w->on_ready now or later, exactly once unless the waiter leaves. */
void silt_registry_use(struct silt_registry *r, silt_slice id, struct silt_waiter *w);
/* Creates and starts a sandbox; SILT_CONFLICT if the id is taken. `w` is called when it runs. */
int silt_registry_create(struct silt_registry *r, silt_slice id,
                         const struct silt_sandbox_options *o, struct silt_waiter *w,
                         struct silt_error *e);
void silt_waiter_leave(struct silt_waiter *w);
void silt_registry_set_lifetime(struct silt_sandbox_row *row, const struct silt_lifetime *life);
/* All sandboxes sorted by id, allocated in the arena. NULL if the arena is full. */
struct silt_sandbox **silt_registry_sorted(struct silt_registry *r, struct silt_arena *a,
                                           size_t *ret_count);

/* The rest is for this room. */
/* A sandbox without an id, not started. */
int silt_registry_new_sandbox(struct silt_registry *r, silt_slice image, struct silt_sandbox **ret,
                              struct silt_error *e);
void silt_registry_set_image(struct silt_sandbox_row *row, const struct silt_image *image,
                             silt_slice asked);
/* A sandbox that begins with these files, named and with the choices of `like`: not stored, not
 * started, and without files until silt_sandbox_make. SILT_CONFLICT: the id is taken. */
int silt_registry_new_fork(struct silt_registry *r, const char *id, const struct silt_image *image,
                           const struct silt_sandbox_row *like, struct silt_sandbox **ret,
                           struct silt_error *e);
void silt_registry_free_slot(struct silt_registry *r, uint32_t slot);
uint64_t silt_registry_number(struct silt_registry *r);
/* Borrows the descriptors. -1: the note could be neither sent nor queued; that is logged. */
int silt_registry_tell_super(struct silt_registry *r, const struct silt_super_note *note,
                             const int *fds, int nfds);
void silt_super_notes_init(struct silt_super_notes *n);
void silt_super_notes_forget(struct silt_registry *r);

/* Instance types; NULL: unknown. */
const struct silt_priv_limits *silt_type_find(silt_slice name);
