/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: one isolated computer and its state in siltd; owned by the registry. Its processes come
 * and go with starts, idle stops and crashes; only destroy ends the sandbox itself.
 *
 *   STOPPED --use--> STARTING --running--> RUNNING --stop, crash--> STOPPING --empty--> STOPPED
 *                        \---failed---> STOPPED |  ^                  ^
 *                                          idle |  | use              | idle for long
 *                                               v  |                  |
 *                                              PAUSED ----------------/
 *   any --destroy--> DESTROYING --empty--> (gone)
 *
 * Phases within a state:
 *
 *   STARTING    MAKING --all forks have files--> STOPPED
 *               CREATING --silt-priv has created it--------------------------------> RUNNING
 *               CLAIMED --silt-priv has named it-----------------------------------> RUNNING
 *               ADOPTED --the agent reports--> GREETED --silt-super has finished---> RUNNING
 *   PAUSED      PAUSING --frozen--> PAUSED --use--> RESUMING --thawed--> RUNNING
 *                  \--does not freeze--> RUNNING
 *   DESTROYING  EMPTYING --files are gone--> EMPTIED --no connection, no seal--> GONE --> (freed)
 *                  \--failure--> STOPPED */
#pragma once

#include "base/buf.h"
#include "sandbox/core/network_state.h"
#include "sandbox/core/registry.h"
#include "wire/agent.h"
#include "wire/super.h"

enum silt_sandbox_state {
    SILT_SANDBOX_STOPPED,
    SILT_SANDBOX_STARTING,
    SILT_SANDBOX_RUNNING,
    SILT_SANDBOX_PAUSED,
    SILT_SANDBOX_STOPPING,
    SILT_SANDBOX_DESTROYING,
};

/* Each belongs to one state. */
enum silt_sandbox_phase {
    SILT_SANDBOX_IS_STOPPED,
    SILT_SANDBOX_IS_MAKING,   /* STARTING: a fork or a rollback gets its files, and it stops then */
    SILT_SANDBOX_IS_CREATING, /* STARTING: silt-priv is creating its processes */
    SILT_SANDBOX_IS_CLAIMED,  /* STARTING: taken from the ready pool, being named */
    SILT_SANDBOX_IS_ADOPTED,  /* STARTING: from a previous siltd; its agent has not reported */
    SILT_SANDBOX_IS_GREETED,  /* STARTING: its agent has reported; silt-super has not finished */
    SILT_SANDBOX_IS_RUNNING,
    SILT_SANDBOX_IS_PAUSING, /* PAUSED: silt-priv is freezing its processes */
    SILT_SANDBOX_IS_PAUSED,
    SILT_SANDBOX_IS_RESUMING, /* PAUSED: silt-priv is thawing them */
    SILT_SANDBOX_IS_STOPPING,
    SILT_SANDBOX_IS_EMPTYING, /* DESTROYING: its processes and files are being removed */
    SILT_SANDBOX_IS_EMPTIED,  /* DESTROYING: only `drops` and `seals` are left */
    SILT_SANDBOX_IS_GONE,     /* DESTROYING: freed with the last request */
    SILT_SANDBOX_PHASE_MAX,
};

struct silt_channel { /* sandbox/core/channel.c */
    struct silt_watch watch;
    struct silt_watch pidfd;
    struct silt_timer ending; /* the channel is closed, silt-init has not exited yet */
    struct silt_timer pulse;  /* liveness check; runs only while a caller waits */
    bool pulsing;             /* pulse is armed */
    bool pinged;              /* nothing received since the PING */
    int64_t heard_ms;         /* time of the last frame received */
    struct silt_link unsent;  /* frames the socket had no room for */
    size_t unsent_bytes;
    bool welcome; /* frames before the agent's WELCOME are stale */
    bool stuck;   /* the agent stopped reading: it is being ended */
};

struct silt_works {              /* sandbox/file/worker_pool.c */
    struct silt_link idle, busy; /* worker processes */
    struct silt_link waiting[2]; /* operations without a worker: SILT_WORK_SHORT, SILT_WORK_PACED */
    struct silt_timer timer;
    uint32_t count; /* worker processes */
    uint32_t longs; /* of these, with a watch or a port wait */
    uint32_t paced; /* of these, paced by a client */
    uint32_t waiting_count;
    bool serving; /* workers are being assigned: do not recurse */
};

struct silt_prestarted_set { /* sandbox/context/prestarted.c */
    struct silt_link all;
    struct silt_timer timer;
    int64_t wanted_ms;                 /* when a context could last have used one */
    bool node_wanted;                  /* that context ran Node */
    enum silt_language language;       /* its language */
    bool python_wanted;                /* a Python context could not be forked from a zygote */
    uint32_t python_failures;          /* useless prestarted Pythons in a row */
    bool given_up;                     /* one exited by itself: none until the next context */
    struct silt_prestarted_look *look; /* silt-priv is reporting memory; NULL: not asked */
};

struct silt_exposed_port {        /* sandbox/preview/exposed_port.h */
    struct silt_link link;        /* in sandbox->entrances; exposed ones sorted by port */
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_port_row row;     /* a direct port has no token */
    bool told;                /* silt-proxy may know the number, perhaps from a previous siltd */
    bool found;               /* silt-proxy learned it from us: it may request sockets */
    bool used;                /* requests are in flight: the sandbox is held */
    struct silt_link refused; /* dials that wait for the port to open */
    struct silt_timer retry;
    int64_t pause_ms; /* retry delay */
    struct silt_grave grave;
};

enum silt_handles { SILT_HANDLES_SOME, SILT_HANDLES_ASKED, SILT_HANDLES_ALL };

enum { SILT_EXPORTED_MAX = 128 << 10 };

struct silt_sandbox {
    struct silt_registry *registry; /* borrowed */
    struct silt_sandbox_row row;
    enum silt_sandbox_state state; /* follows from the phase */
    enum silt_sandbox_phase phase; /* sandbox.c assigns both in one function */
    bool fresh;                    /* has no files yet */
    bool unrecorded;               /* silt-priv has no recovery record of it yet */
    bool record_stale;             /* changed since its first record was written */
    bool keep_limits;              /* claimed from the ready pool with the right limits */
    bool indexed;                  /* in registry->by_id */
    bool coming;                   /* the ready pool waits for it */
    bool known;                    /* the journal has its creation */
    bool paused_before;            /* by a previous siltd, whose journal says so */
    bool unsaved;                  /* a full disk refused its row or one of its processes' */
    struct silt_link ready_link;
    struct silt_channel channel;
    struct silt_link sessions; /* in creation order */
    size_t session_count;
    /* NAME=value\0…: added to row.env in new sessions. */
    struct silt_buf exported;
    bool exported_unsaved;
    /* NAME=value\0…: variables of row.env that were changed while these processes run. */
    struct silt_buf former_env;
    struct silt_link sessions_unsaved; /* in registry->unsaved_sessions */
    uint64_t settling;                 /* number of the PING before a stop; 0: none */
    struct silt_timer settled;         /* deadline of its answer */
    struct silt_link execs;
    uint32_t exec_count;
    uint64_t execs_started; /* since siltd began, like the sums of the registry */
    uint64_t out_bytes;
    struct silt_link processes; /* struct silt_process, sorted by number */
    uint32_t process_count;
    struct silt_link contexts; /* struct silt_context, in creation order */
    uint32_t context_count;
    struct silt_link run_logs; /* struct silt_run_log, oldest first */
    size_t run_log_bytes;
    struct silt_fair_queue_user lanes;
    size_t unsent_bytes, answer_bytes; /* as in the registry, for this sandbox */
    struct silt_prestarted_set spares;
    struct silt_works work;
    struct silt_network network;
    struct silt_link entrances; /* struct silt_exposed_port */
    uint32_t visits;            /* dials waiting for a socket */
    uint32_t seals;             /* images being made from it: its slot is not reused */
    uint32_t drops; /* exposed ports of a destroyed sandbox whose connections are being closed */
    struct silt_link history; /* struct silt_history, sandbox/image/undo.c */
    uint32_t history_count;
    struct silt_link file_watches; /* sandbox/file/watch.c */
    struct silt_link sweeps;       /* struct silt_sweep */
    struct silt_waiter *maker;     /* MAKING: waits for the files; NULL: they are there */
    struct silt_link waiters;
    const char *halt_cause, *halt_message; /* constants: why the halters stop it */
    struct silt_link resters;              /* struct silt_waiter: until it is paused or stopped */
    struct silt_link halters;              /* struct silt_waiter: resters, once the stop begins */
    struct silt_link destroyers;           /* struct silt_waiter */
    uint32_t requests;                     /* in flight; not idle while non-zero */
    uint32_t awake;                        /* running background processes and terminals */
    bool wake_wanted;                      /* used while it was being paused */
    struct silt_priv_stat usage;           /* as measured last */
    int64_t usage_ms;                      /* then; 0: not in this state */
    int64_t disk_full_ms;                  /* when an event said so; 0: never */
    int64_t begun_us;                      /* of its create or wake, until it runs; 0: of none */
    enum silt_timing_kind begun;
    int64_t resumed_ms; /* when it was last resumed; 0: not in this incarnation */
    char remark[160];   /* why it could not be paused; empty: nothing to report */
    uint32_t asks;      /* modifying requests to silt-priv in flight: at most one */
    enum silt_handles handles;
    uint32_t handles_wanted; /* requested by its agent while another request was in flight */
    struct silt_timer idle;  /* RUNNING: until it is paused; PAUSED: until it is stopped */
    struct silt_timer hello; /* deadline for the agent's WELCOME */
    struct silt_grave grave;
};

struct silt_sandbox *silt_sandbox_new(struct silt_registry *r, uint32_t slot);
void silt_sandbox_start(struct silt_sandbox *s);
/* running, paused or stopped. One that starts or whose processes are being ended is running. */
const char *silt_sandbox_state_name(const struct silt_sandbox *s);
/* A new one gets files and is not started: empty ones, or a copy of the layer `copy`. Calls `w`
 * once, also when it is destroyed meanwhile. */
void silt_sandbox_make(struct silt_sandbox *s, const uint8_t *copy, struct silt_waiter *w);
/* Then, with the row stored: it is a stopped sandbox like any other. */
void silt_sandbox_be_made(struct silt_sandbox *s);
/* Gives a stopped sandbox other files, a copy of the layer. Calls `w` once. */
void silt_sandbox_roll_back(struct silt_sandbox *s, const uint8_t *layer, struct silt_waiter *w);
/* What both leave, once their caller is done: a stopped sandbox like any other. */
void silt_sandbox_end_making(struct silt_sandbox *s);
void silt_sandbox_claim(struct silt_sandbox *s); /* a running one of the ready pool, now named */
void silt_sandbox_adopt(struct silt_sandbox *s, int channel, int pidfd); /* takes both */
/* siltd is exiting: frees its memory without callbacks. */
void silt_sandbox_forget(struct silt_sandbox *s);
/* Ends the processes and keeps the files. `cause`: see struct silt_death. */
void silt_sandbox_stop(struct silt_sandbox *s, const char *cause, const char *message);
/* The same on request: calls `w` when the processes have ended, or now if it has none. */
void silt_sandbox_halt(struct silt_sandbox *s, struct silt_waiter *w);
void silt_sandbox_halt_as(struct silt_sandbox *s, struct silt_waiter *w, const char *cause,
                          const char *message);
/* Calls `w` (may be NULL) with a NULL sandbox once nothing is left. Callers waiting for the sandbox
 * to run get an error; later callers get a new sandbox of that name. */
void silt_sandbox_destroy(struct silt_sandbox *s, struct silt_waiter *w);
/* The first step of that, for callers that need to know whether it can begin. */
int silt_sandbox_condemn(struct silt_sandbox *s, struct silt_error *e);
/* Starts or resumes the sandbox if necessary and calls `w` when it runs. */
void silt_sandbox_wait(struct silt_sandbox *s, struct silt_waiter *w);
static inline bool silt_sandbox_is_up(const struct silt_sandbox *s) /* it has processes */
{
    return s->state == SILT_SANDBOX_RUNNING || s->state == SILT_SANDBOX_PAUSED;
}
/* It comes from a previous siltd, and what it still runs is not reconciled yet. */
static inline bool silt_sandbox_is_adopted(const struct silt_sandbox *s)
{
    return s->phase == SILT_SANDBOX_IS_ADOPTED || s->phase == SILT_SANDBOX_IS_GREETED;
}
/* Brackets a request, during which the sandbox does not go idle. */
void silt_sandbox_hold(struct silt_sandbox *s);
void silt_sandbox_release(struct silt_sandbox *s);
/* Brackets a background process or terminal: the same, unless the sandbox may sleep with them. */
void silt_sandbox_keep_awake(struct silt_sandbox *s);
void silt_sandbox_let_sleep(struct silt_sandbox *s);

/* pause: freezes the processes of an idle sandbox and resumes them on the next use. Nothing is
 * lost and the incarnation stays. */
/* Freezes a running sandbox. Calls `w` (may be NULL) when it is paused, or with the error: its
 * processes do not freeze, or the row cannot be written. */
void silt_sandbox_pause(struct silt_sandbox *s, struct silt_waiter *w);
/* Resumes a paused sandbox; otherwise does nothing. */
void silt_sandbox_wake(struct silt_sandbox *s);
/* Restarts the idle time, also after the settings have changed. */
void silt_sandbox_rest_later(struct silt_sandbox *s);
/* A previous siltd had paused it. */
void silt_sandbox_pause_again(struct silt_sandbox *s);
/* Sends the request of a phase that had to wait for another one. */
void silt_sandbox_pause_continue(struct silt_sandbox *s);
void silt_sandbox_on_idle(struct silt_timer *t);
/* Records why its processes ended, also in the store. */
void silt_sandbox_died(struct silt_sandbox *s, const struct silt_death *d);
/* Writes its row. On a full disk upkeep tries again. */
void silt_sandbox_save(struct silt_sandbox *s);
/* The same, for a caller that cannot go on without it. */
int silt_sandbox_store(struct silt_sandbox *s, struct silt_error *e);
void silt_sandbox_on_sealed(struct silt_sandbox *s);   /* decrements `seals` */
void silt_sandbox_on_dropped(struct silt_sandbox *s);  /* decrements `drops` */
void silt_sandbox_on_recorded(struct silt_sandbox *s); /* sandbox/core/recovery.h */

/* Current usage. The callback is called exactly once; stat is NULL on failure. */
/* Whether `usage` is less than some seconds old, or nothing runs that could change it. */
bool silt_sandbox_usage_is_fresh(const struct silt_sandbox *s);
typedef void silt_sandbox_stated(void *context, const struct silt_priv_stat *stat);
void silt_sandbox_stat(struct silt_sandbox *s, silt_sandbox_stated *on_stat, void *context);

/* Sets `note.key`; descriptors are borrowed. */
void silt_sandbox_tell_super(struct silt_sandbox *s, struct silt_super_note note, const int *fds,
                             int nfds);

/* channel: frames to and from silt-init. */
void silt_channel_open(struct silt_sandbox *s, int channel, int pidfd); /* takes both */
void silt_channel_close(struct silt_sandbox *s);
struct silt_frame_out {
    uint32_t type, flags;
    uint64_t id;
    silt_slice head, body; /* concatenated */
    const int *fds;        /* borrowed; duplicated if the frame is queued */
    int nfds;
};
void silt_channel_send(struct silt_sandbox *s, const struct silt_frame_out *f);
void silt_channel_hello(struct silt_sandbox *s);

/* For sandbox.c and pause.c. */
void silt_sandbox_enter(struct silt_sandbox *s, enum silt_sandbox_phase next);
/* One modifying request to silt-priv at a time. `on_answer` begins with silt_sandbox_answered. */
void silt_sandbox_ask(struct silt_sandbox *s, const struct silt_priv_request *q, const int *fds,
                      int nfds, silt_priv_answered *on_answer);
/* Notes the answer. True if the sandbox is ending and the answer no longer matters. */
bool silt_sandbox_answered(struct silt_sandbox *s);
void silt_sandbox_tell_resters(struct silt_sandbox *s, const struct silt_error *e);
/* Its create or wake begins now, unless one has begun already; ends when it serves callers. */
void silt_sandbox_time(struct silt_sandbox *s, enum silt_timing_kind kind);
/* It runs and serves callers. */
void silt_sandbox_serve(struct silt_sandbox *s);

/* Notifications from the channel and the facets. */
/* What its sessions keep is known: the stop can begin. */
void silt_sandbox_on_settled(struct silt_sandbox *s);
void silt_sandbox_on_network(struct silt_sandbox *s); /* commands no longer wait for the network */
void silt_sandbox_on_hello_done(struct silt_sandbox *s);
void silt_sandbox_settle(struct silt_sandbox *s); /* silt-super has sent all it kept */
/* The agent died or violated the protocol. */
void silt_sandbox_on_lost(struct silt_sandbox *s, const char *why);
void silt_sandbox_on_need_handles(struct silt_sandbox *s, uint32_t count);
