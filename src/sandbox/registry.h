/* SPDX-License-Identifier: Apache-2.0 */
/* registry: every sandbox this daemon knows, the ready ones that wait for a name, and the images. First
 * use of an id makes a sandbox of it; a restart finds the running ones again. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/prefix.h"
#include "event/loop.h"
#include "event/worker.h"
#include "priv/ask.h"
#include "sandbox/pool.h"
#include "sandbox/ready.h"
#include "sandbox/lane.h"
#include "sandbox/entrance.h"
#include "store/store.h"

struct silt_sandbox;
struct silt_image;
struct silt_containers;
struct silt_super_note;

struct silt_registry_settings {
    uint32_t slots;
    uint32_t ready; /* how many sandboxes to keep ready */
    uint32_t agent_deadline_ms; /* 0: none */
    uint64_t output_max;        /* bytes of output of one run of code */
    uint32_t spares;            /* how many Nodes a sandbox keeps for its next contexts */
    uint32_t ready_pythons;     /* how many ready sandboxes have a Python that waits */
    uint32_t ready_nodes;       /* the same, Nodes */
    int64_t spare_idle_ms;      /* how long */
    uint32_t zygotes;           /* how many Pythons silt-priv keeps warm */
    char image[SILT_IMAGE_NAME_SIZE];
    uint32_t build_steps;     /* how many steps of builds are remembered */
    uint32_t build_timeout_s; /* of one of them */
    uint64_t build_context_max;
    uint32_t pull_timeout_s; /* of a pull from a registry */
    uint32_t pull_silence_s; /* how long nothing may come meanwhile */
    uint64_t pull_max;       /* bytes of what it fetches */
    const char *insecure;    /* borrowed, for ever: registries without TLS, with commas */
    silt_slice authorities;  /* borrowed, for ever: further ones, PEM */
    const char *image_map; /* borrowed, for ever: silt_image_check_map */
    char type[SILT_TYPE_SIZE];
    enum silt_net_mode network;   /* of sandboxes that were created without one */
    const char *allow;            /* borrowed, for ever: its rules, one a line; may be NULL */
    struct silt_prefix_list open; /* closed networks that sandboxes may reach all the same */
    struct silt_entrance_settings entrance;
};

enum {
    SILT_AUTHORITIES_MAX = 1 << 20, /* bytes of settings.authorities, and one more */
    SILT_UNSTARTED_MAX = 256 << 20, /* bytes of commands and code that have not started */
    SILT_UNSENT_EACH_MAX = 64 << 20, /* of code in one sandbox that its interpreters do not take */
    SILT_UNSENT_MAX = 512 << 20,     /* in all of them */
    SILT_ANSWERS_EACH_MAX = 128 << 20, /* of answers of one sandbox that are collected */
    SILT_ANSWERS_MAX = 512 << 20,      /* of all */
};

struct silt_registry_counts {
    uint64_t created, destroyed, deaths, claims, cold_starts, execs, oom_kills;
    uint64_t out_bytes;
};

struct silt_registry {
    struct silt_loop *loop;      /* borrowed */
    struct silt_store *store;    /* borrowed */
    struct silt_priv_ask *priv;  /* borrowed */
    struct silt_worker *worker;  /* borrowed */
    int super;                   /* borrowed: channel to silt-super */
    struct silt_egress *egress;  /* channel to silt-proxy */
    struct silt_captures *captures;
    struct silt_recovery *recovery;
    struct silt_preview *preview; /* another to its role preview */
    struct silt_containers *containers; /* of the engine socket; NULL: there is none */
    struct silt_registry_settings settings;
    struct silt_priv_limits default_limits; /* of settings.type */
    struct silt_map by_id;
    struct silt_sandbox **by_slot; /* settings.slots pointers; NULL: free */
    uint32_t next_slot;            /* round robin, so that a number rests before it is used again */
    uint32_t slots_used;
    struct silt_ready ready;
    uint32_t cold_starts; /* users wait for these: ready ones come later */
    uint32_t contexts_starting; /* for these, too, as long as there is plenty */
    struct silt_timer upkeep;
    struct silt_link images; /* struct silt_image */
    uint32_t image_count;
    struct silt_map images_by_digest, image_names;
    struct silt_link steps; /* sandbox/step_cache.c */
    struct silt_map steps_by_key;
    struct silt_link builds; /* struct silt_build */
    uint32_t build_count;
    struct silt_link pulls; /* struct silt_pull */
    uint32_t pull_count;
    struct silt_link imports, forgets, seals; /* under way: sandbox/image.c, sandbox/seal.c */
    struct silt_link net_asks;         /* under way: sandbox/network.c */
    uint32_t stagings; /* bit set of staging folders in use */
    uint32_t exports;  /* under way: sandbox/export.c */
    size_t unstarted_bytes; /* of commands and code that wait to be started */
    size_t unsent_bytes;    /* of code that interpreters have not taken yet */
    size_t answer_bytes;    /* of answers that are collected until their code has ended */
    struct silt_lanes lanes; /* for long lines of interpreters */
    struct silt_worker *parsers; /* borrowed; they understand these, and keep no file waiting */
    uint32_t open_logs;     /* of processes */
    uint64_t follow_turn;   /* sandbox/follow.c: the turn of the loop that follow_bytes are of */
    uint64_t follow_bytes;
    uint64_t work_turn;     /* sandbox/work.c: the turn that work_frames are of */
    uint64_t work_frames;
    uint64_t epoch;       /* this run of siltd */
    uint64_t next_number; /* of sessions and execs; unique over restarts */
    uint64_t next_cell;   /* of code in contexts; a number for JavaScript, too: below 2^53 */
    uint64_t lookouts;    /* watches of files so far: a part of their names */
    bool rebooted, recovering;
    bool without_network; /* as the last sandbox that was made has found */
    struct silt_job checkpoint;
    bool checkpointing; /* a worker is at it */
    struct silt_registry_counts counts;
    struct silt_pool pool;
};

/* What a caller may choose for a new sandbox; slices are borrowed. */
struct silt_sandbox_options {
    silt_slice image; /* empty: the default */
    char type[SILT_TYPE_SIZE]; /* empty with `limits` given */
    struct silt_priv_limits limits;
    silt_slice env;    /* NAME=value\0… */
    silt_slice labels; /* JSON object or empty */
    int64_t sleep_after_s;
    bool ephemeral;
    enum silt_net_mode network;
    silt_slice allow; /* rules, one a line; with mode allow */
    uint64_t capture; /* with mode captive: the number of its capture (sandbox/capture.h) */
};

/* Waits until a sandbox runs. Embedded in the request; silt_waiter_leave when that goes. */
struct silt_waiter {
    struct silt_link link;
    void (*on_ready)(struct silt_waiter *w, struct silt_sandbox *sandbox, const struct silt_error *e);
};

/* The operator's choice for sandboxes that were created without one, as in the settings. */
struct silt_network_settings {
    const char *mode, *allow, *open;
};
int silt_registry_set_network(struct silt_registry_settings *s, const struct silt_network_settings *n,
                              struct silt_error *e);

/* Before it is opened, while siltd may still wait: fills the store from the recovery records (sandbox/recovery.h), if the
 * store is new. `priv` is the channel to silt-priv, borrowed, which nobody else uses yet. */
int silt_registry_restore(struct silt_registry *r, int priv, struct silt_error *e);
int silt_registry_open(struct silt_registry *r, struct silt_error *e);
/* A descriptor pair that silt-super kept for us; takes both. */
void silt_registry_adopt(struct silt_registry *r, uint32_t slot, int channel, int pidfd);
/* Those of a context; takes them. */
void silt_registry_adopt_context(struct silt_registry *r, uint32_t slot, uint64_t number, const int *fds);
void silt_registry_outlive_context(struct silt_registry *r, uint32_t slot, uint64_t number); /* of a former version */
void silt_registry_adopted_all(struct silt_registry *r);
/* A channel to silt-proxy, also in place of an earlier one; takes it. */
void silt_registry_on_proxy(struct silt_registry *r, int channel);
void silt_registry_on_preview(struct silt_registry *r, int channel); /* the same for its role preview */
void silt_registry_close(struct silt_registry *r);

struct silt_sandbox *silt_registry_find(struct silt_registry *r, silt_slice id);
/* Calls w->on_ready now or later, exactly once unless the waiter leaves. */
void silt_registry_use(struct silt_registry *r, silt_slice id, struct silt_waiter *w);
/* A new sandbox with options; SILT_CONFLICT when the id is taken. It is started: `w` tells when. */
int silt_registry_create(struct silt_registry *r, silt_slice id, const struct silt_sandbox_options *o,
                         struct silt_waiter *w, struct silt_error *e);
void silt_waiter_leave(struct silt_waiter *w);
/* All of them, sorted by id; the array lives in the arena. NULL when that has no room. */
struct silt_sandbox **silt_registry_sorted(struct silt_registry *r, struct silt_arena *a, size_t *ret_count);

/* The rest is for this room. */
/* One without an id, not yet started. */
int silt_registry_new_sandbox(struct silt_registry *r, silt_slice image, struct silt_sandbox **ret, struct silt_error *e);
void silt_registry_set_image(struct silt_sandbox_row *row, const struct silt_image *image, silt_slice asked);
void silt_registry_free_slot(struct silt_registry *r, uint32_t slot);
uint64_t silt_registry_number(struct silt_registry *r);
void silt_registry_tell_super(struct silt_registry *r, const struct silt_super_note *note);

/* Instance types. NULL when unknown. */
const struct silt_priv_limits *silt_type_find(silt_slice name);
