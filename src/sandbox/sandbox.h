/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: one isolated computer and its state. Ends only by destroy; its processes come and go.
 *
 *   STOPPED --use--> STARTING --running--> RUNNING --idle--> STOPPING --empty--> STOPPED
 *                        \---failed---> STOPPED    \--crash--/
 *   any --destroy--> DESTROYING --empty--> (gone)                                            */
#pragma once

#include "sandbox/network.h"
#include "sandbox/registry.h"
#include "wire/agent.h"
#include "wire/super.h"

enum silt_sandbox_state {
    SILT_SANDBOX_STOPPED,
    SILT_SANDBOX_STARTING,
    SILT_SANDBOX_RUNNING,
    SILT_SANDBOX_STOPPING,
    SILT_SANDBOX_DESTROYING,
};

struct silt_channel { /* sandbox/channel.c */
    struct silt_watch watch;
    struct silt_watch pidfd;
    struct silt_timer ending; /* the channel was closed, the process has not ended yet */
    struct silt_timer pulse;  /* is anybody there? Asked only while somebody waits */
    bool pulsing;             /* it is set */
    bool pinged;              /* nothing came since the PING */
    int64_t heard_ms;         /* when something came last */
    struct silt_link unsent; /* frames that did not fit the socket */
    size_t unsent_bytes;
    bool welcome; /* what comes before the agent's WELCOME is stale */
    bool stuck;   /* the agent did not read for too long: its end is under way */
};

struct silt_works { /* sandbox/work.c */
    struct silt_link idle, busy; /* worker processes */
    struct silt_link waiting[2]; /* operations without one: SILT_WORK_SHORT, SILT_WORK_PACED */
    struct silt_timer timer;
    uint32_t count; /* worker processes */
    uint32_t longs; /* of them with a watch or a port wait */
    uint32_t paced; /* of them at the pace of a client */
    uint32_t waiting_count;
    bool serving; /* those that wait are being given workers */
};

struct silt_spares { /* sandbox/spare.c */
    struct silt_link all;
    struct silt_timer timer;
    int64_t wanted_ms; /* when the last context could have used one */
    bool node_wanted;             /* there was such a context */
    enum silt_language language;  /* of that */
    bool given_up;     /* one ended by itself: none until the next context */
    struct silt_spare_look *look; /* silt-priv is asked about memory; NULL: it is not */
};

enum silt_handles { SILT_HANDLES_SOME, SILT_HANDLES_ASKED, SILT_HANDLES_ALL };

enum { SILT_EXPORTED_MAX = 128 << 10 };

struct silt_sandbox {
    struct silt_registry *registry; /* borrowed */
    struct silt_sandbox_row row;
    enum silt_sandbox_state state;
    bool fresh;      /* has no files yet */
    bool unrecorded; /* silt-priv has no recovery record of it yet */
    bool record_stale; /* it has changed since its first record was written */
    bool claimed;    /* was taken from the ready ones and is being named */
    bool keep_limits; /* a ready one that is claimed has the right limits already */
    bool indexed;    /* in registry->by_id */
    bool coming;     /* one that the ready ones are waiting for */
    bool adopted;    /* of a former siltd; its agent has not told yet what it has */
    bool greeted;    /* its agent has told: waits until silt-super has told all, too */
    bool gone;       /* destroyed; the memory goes with the last request */
    struct silt_link ready_link;
    struct silt_channel channel;
    struct silt_link sessions; /* in creation order */
    size_t session_count;
    struct silt_buf exported; /* NAME=value\0…: of sessions that begin, on top of row.env; until the processes end */
    struct silt_link lost_sessions; /* whose shells a crash took along, until their next ones have said so */
    size_t lost_count;
    struct silt_link execs;
    uint32_t exec_count;
    struct silt_link processes; /* struct silt_process, in the order of their numbers */
    uint32_t process_count;
    struct silt_link contexts; /* struct silt_context, in creation order */
    uint32_t context_count;
    struct silt_lane_user lanes;
    size_t unsent_bytes, answer_bytes; /* as in the registry, of this one */
    struct silt_spares spares;
    struct silt_works work;
    struct silt_network network;
    struct silt_link entrances; /* struct silt_entrance */
    uint32_t visits; /* of those who wait for sockets to them */
    uint32_t seals;  /* images that are being made of it: its slot is not given away meanwhile */
    uint32_t drops;  /* entrances of a sandbox that goes, whose visitors are being cut */
    bool emptied;    /* it is destroyed but for that */
    struct silt_link lookouts; /* sandbox/watch.c */
    struct silt_link sweeps;   /* struct silt_sweep */
    struct silt_link waiters;
    struct silt_link destroyers; /* struct silt_waiter */
    uint32_t requests; /* in flight: not idle */
    uint32_t asks;     /* questions to silt-priv that change it and are not answered: at most one */
    enum silt_handles handles;
    uint32_t handles_wanted; /* by its agent, while something else was asked */
    struct silt_timer idle;
    struct silt_timer hello; /* deadline of the agent's answer */
    struct silt_grave grave;
};

struct silt_sandbox *silt_sandbox_new(struct silt_registry *r, uint32_t slot);
void silt_sandbox_start(struct silt_sandbox *s);
void silt_sandbox_claim(struct silt_sandbox *s);
void silt_sandbox_adopt(struct silt_sandbox *s, int channel, int pidfd); /* takes both */
void silt_sandbox_forget(struct silt_sandbox *s); /* the daemon ends: its memory goes, nobody is told */
/* Ends the processes, keeps the files. `cause` as in struct silt_death. */
void silt_sandbox_stop(struct silt_sandbox *s, const char *cause, const char *message);
/* `w` (may be NULL) is told when nothing is left; its sandbox argument is NULL then. Who waits for it to
 * run is told that it goes; who comes later gets a new one of that name. */
void silt_sandbox_destroy(struct silt_sandbox *s, struct silt_waiter *w);
void silt_sandbox_wait(struct silt_sandbox *s, struct silt_waiter *w);
/* A request begins and ends: keeps the sandbox awake in between. */
void silt_sandbox_hold(struct silt_sandbox *s);
void silt_sandbox_release(struct silt_sandbox *s);
/* Why processes ended last; also kept in the store. */
void silt_sandbox_died(struct silt_sandbox *s, const struct silt_death *d);
void silt_sandbox_save(struct silt_sandbox *s);
void silt_sandbox_on_sealed(struct silt_sandbox *s); /* one of `seals` less */
void silt_sandbox_on_recorded(struct silt_sandbox *s); /* sandbox/recovery.h */

/* Usage now. The callback comes exactly once; stat is NULL on failure. */
typedef void silt_sandbox_stated(void *context, const struct silt_priv_stat *stat);
void silt_sandbox_stat(struct silt_sandbox *s, silt_sandbox_stated *on_stat, void *context);

/* `note.key` is set here; descriptors are borrowed. */
void silt_sandbox_tell_super(struct silt_sandbox *s, struct silt_super_note note, const int *fds, int nfds);

/* channel: frames to and from silt-init. */
void silt_channel_open(struct silt_sandbox *s, int channel, int pidfd); /* takes both */
void silt_channel_close(struct silt_sandbox *s);
struct silt_frame_out {
    uint32_t type, flags;
    uint64_t id;
    silt_slice head, body; /* one after the other */
    const int *fds;        /* borrowed: duplicated if they must wait */
    int nfds;
};
void silt_channel_send(struct silt_sandbox *s, const struct silt_frame_out *f);
void silt_channel_hello(struct silt_sandbox *s);

/* What channel tells the rest of the room; bodies are checked for size only. */
void silt_exec_on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len);
void silt_session_on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len);
void silt_sandbox_on_network(struct silt_sandbox *s); /* commands need not wait for it any more */
void silt_sandbox_on_hello_done(struct silt_sandbox *s);
void silt_sandbox_settle(struct silt_sandbox *s); /* silt-super has told all that it kept */
void silt_sandbox_on_lost(struct silt_sandbox *s, const char *why); /* agent died or broke the contract */
void silt_sandbox_on_need_handles(struct silt_sandbox *s, uint32_t count);
