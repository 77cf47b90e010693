/* SPDX-License-Identifier: Apache-2.0 */
/* container: one container of the engine socket (a sandbox with one program, or a sidecar, which is none) and its state; all of them
 * survive siltd. An app container's sandbox is `w-` and a part of the sha256 of its name; it outlives the container when that had ended.
 *
 *   CREATED --start--> STARTING --program runs--> RUNNING --its end, a signal--> ENDING --connections are cut--> EXITED
 *                          \----it cannot run------------------------------------------------------------------^
 *   any --remove--> (ENDING, then) REMOVING --files are gone--> (gone)
 *                                      \----they cannot be removed--> EXITED, condemned: it can only be removed   */
#pragma once

#include "base/list.h"
#include "sandbox/container_spec.h"
#include "sandbox/process.h"

enum { SILT_CONTAINERS_MAX = 8192, SILT_CONTROL_PORT = 3000, SILT_LAST_WORDS_MAX = 64 };

struct silt_container;
struct silt_mounting;

enum silt_container_state {
    SILT_CONTAINER_IS_CREATED,
    SILT_CONTAINER_IS_STARTING,
    SILT_CONTAINER_IS_RUNNING,
    SILT_CONTAINER_IS_ENDING,
    SILT_CONTAINER_IS_EXITED,
    SILT_CONTAINER_IS_REMOVING,
};

/* Waits for an end or for the removal; embedded, must leave before it goes. */
struct silt_container_wait {
    struct silt_link link;
    struct silt_container *container; /* borrowed */
    bool removed; /* what it waits for */
    bool next;    /* not for an end that was, but for the next */
    void (*on_done)(struct silt_container_wait *w, int32_t code);
};

/* Waits until something is done; embedded, must leave before it goes. */
struct silt_container_ask {
    struct silt_link link;
    void (*on_done)(struct silt_container_ask *a, const struct silt_error *e); /* NULL: it is */
};

struct silt_container {
    struct silt_containers *all; /* borrowed */
    struct silt_container_row row;
    struct silt_arena arena; /* of spec */
    struct silt_container_spec spec;
    struct silt_link link;
    enum silt_container_state state;
    char sandbox[SILT_ID_MAX + 1]; /* its id */
    bool builtin;                  /* port SILT_CONTROL_PORT is served by us */
    bool reused;                   /* its sandbox has files of an earlier one */
    bool doomed;                   /* it is removed as soon as it has ended */
    bool condemned;                /* its files go with it, whoever finishes that; saved */
    bool unwatched;                /* it ran when siltd began, and nobody has waited for its end since */
    bool clearing;                 /* files of an earlier one are going */
    bool leaving;                  /* it was told to end, and does so with leave_code when `stop` is due */
    int32_t leave_code;
    int64_t waited_ms;             /* when somebody began to wait for its end; 0: nobody has */
    struct silt_waiter waiter;     /* for its sandbox */
    struct silt_process_watch watch;
    struct silt_process *process;  /* borrowed: its program, or what makes it ready; NULL: none runs */
    struct silt_process *said;     /* borrowed, held: its program, which has ended; NULL: none, or not in this siltd's time */
    uint32_t readers;              /* of what its program writes: it is not removed by itself before they are done */
    void (*on_trusted)(struct silt_container *c, const struct silt_error *e); /* container_trust.c's */
    int listen;                    /* of a sidecar; the hooks' */
    bool shut;                     /* a sidecar that ran before all of Silt ended: its port is to be opened again */
    uint32_t refusals;             /* of such a one: how often that could not be done */
    uint32_t question;             /* of a sidecar: the newest LISTEN; only its answer counts */
    uint32_t unheard;              /* of a sidecar: how often nobody listened where its traffic goes */
    struct silt_link starters;     /* struct silt_container_ask */
    struct silt_link waits;        /* struct silt_container_wait */
    struct silt_link removers;     /* struct silt_container_ask */
    struct silt_container_wait *kept; /* borrowed: the one whose connection silt-super has, too */
    uint32_t drops;                /* connections that are being cut */
    struct silt_timer delay, stop;
    struct silt_mounting *mounting; /* container_volume.c's; NULL: nothing is being copied */
    struct silt_grave grave;
};

/* container_words.c: why one ended as soon as it had begun. */
struct silt_last_words {
    char sandbox[SILT_ID_MAX + 1]; /* of the container; empty: none */
    char text[440];
};

struct silt_containers_hooks {
    void (*cut)(void *context, struct silt_container *c); /* connections that the API serves itself */
    void (*listen)(void *context, struct silt_container *c, int fd); /* a sidecar's socket; takes it */
    void (*unlisten)(void *context, struct silt_container *c);
    void (*waits)(void *context, struct silt_container *c, int fd); /* who waited for its end when an earlier siltd died; takes it */
    void *context;
};

struct silt_containers {
    struct silt_registry *registry; /* borrowed */
    struct silt_containers_hooks hooks;
    struct silt_link list; /* in the order of their making */
    size_t count;
    struct silt_map by_name, by_id;
    struct silt_link volumes; /* struct silt_volume */
    size_t volume_count;
    struct silt_last_words words[SILT_LAST_WORDS_MAX];
    size_t next_words;
    int diag; /* base/diag.h; -1: none */
    uint32_t exit_delay_ms, stop_after_ms, keep_s, hold_ms;
    bool max_instances; /* what images say about it counts */
    struct silt_timer upkeep;
};

struct silt_containers *silt_containers_new(struct silt_registry *r); /* before the registry opens */
int silt_containers_load(struct silt_containers *all, struct silt_error *e);
void silt_containers_settle(struct silt_containers *all); /* all that still runs was adopted */
void silt_containers_free(struct silt_containers *all);   /* the daemon ends */
/* A socket that silt-super made (to which question) or kept (0); takes it. -1: it could not make it. */
void silt_containers_on_listener(struct silt_containers *all, uint64_t number, uint32_t question, int fd);

/* By name, id or the beginning of an id that only one has. */
struct silt_container *silt_container_find(struct silt_containers *all, silt_slice name);
/* SILT_CONFLICT: the name is taken; SILT_NOT_FOUND: the image, or the sidecar, is not there. `name` may be empty. */
int silt_container_create(struct silt_containers *all, silt_slice name, silt_slice body, uint32_t uid,
                          struct silt_container **ret, struct silt_error *e);
/* Whether it can be started. Not yet: what an earlier one left has to go first; `a` is told. */
bool silt_container_is_made(struct silt_container *c, struct silt_container_ask *a);
/* SILT_LIMIT: as many of its kind run as its image allows. */
int silt_container_check_place(struct silt_container *c, struct silt_error *e);
/* It is made, and does not run. */
void silt_container_start(struct silt_container *c, struct silt_container_ask *a);
/* SILT_CONFLICT: it does not run. */
int silt_container_kill(struct silt_container *c, int signal, struct silt_error *e);
/* SIGTERM, then SIGKILL after so many seconds. */
int silt_container_stop(struct silt_container *c, uint32_t after_s, struct silt_error *e);
/* Ends it first if it runs. The name is free when `a` (may be NULL) is told. `unsure`: who asks may believe that it has ended. */
void silt_container_remove(struct silt_container *c, bool unsure, struct silt_container_ask *a);
/* It is being removed, and somebody who is sure asks for that again: its files go, too. */
void silt_container_condemn(struct silt_container *c);
/* At once when it is so already: true, and the code. */
bool silt_container_wait(struct silt_container *c, struct silt_container_wait *w, int32_t *ret_code);
void silt_container_wait_leave(struct silt_container_wait *w);
/* It waits; the next siltd shall answer it, if this one dies. The newest one of a container only. -1: silt-super has it already. */
void silt_container_wait_keep(struct silt_container_wait *w, int connection);
void silt_container_ask_leave(struct silt_container_ask *a); /* fine when it is over, but was initialized */
/* Its sandbox, made if it is not there, running: `w` is told. */
int silt_container_use(struct silt_container *c, struct silt_waiter *w, struct silt_error *e);
/* The one whose network this sidecar is, and which runs; NULL: none. */
struct silt_container *silt_container_behind(struct silt_container *sidecar);
/* Who made the container of that number; root, when there is none. */
uint32_t silt_containers_owner(const struct silt_registry *r, uint64_t number);
static inline bool silt_container_runs(const struct silt_container *c)
{
    return c->state == SILT_CONTAINER_IS_RUNNING || c->state == SILT_CONTAINER_IS_ENDING;
}
const char *silt_container_status(const struct silt_container *c);
const char *silt_container_last_words(const struct silt_container *c); /* empty: none are known */
/* What its program has written is in this one's log; NULL: it has none, or it is gone. */
struct silt_process *silt_container_output(const struct silt_container *c);
void silt_container_read_begin(struct silt_container *c);
void silt_container_read_end(struct silt_container *c);

/* container_kept.c: files of a container that was removed; they wait for the next one of its name. */
struct silt_kept {
    struct silt_sandbox *sandbox; /* borrowed */
    silt_slice name;              /* of the container; in the arena */
    char id[SILT_CONTAINER_ID_SIZE];
};
/* All of them, from *slot = 0 on. */
bool silt_kept_next(const struct silt_containers *all, struct silt_arena *a, uint32_t *slot, struct silt_kept *ret);
/* By name, id or the beginning of an id that only one has. */
bool silt_kept_find(const struct silt_containers *all, struct silt_arena *a, silt_slice name, struct silt_kept *ret);

/* container_size.c: the class of the Worker that has made it; data NULL: none has */
silt_slice silt_container_class(const struct silt_container *c);

/* sandbox.c: its processes have ended. */
void silt_container_on_sandbox_ended(struct silt_sandbox *s);

/* container_image.c: what an image says; slices live as long as the image. */
struct silt_container_image {
    char name[SILT_IMAGE_NAME_SIZE]; /* for silt_sandbox_options */
    uint8_t digest[SILT_DIGEST_SIZE];
    bool builtin;
    struct silt_words entrypoint, cmd;
    silt_slice env, workdir, user;
    silt_slice type, max_instances; /* labels; data NULL: not said */
};
int silt_container_image(struct silt_registry *r, silt_slice reference, struct silt_container_image *ret,
                         struct silt_error *e);
