/* SPDX-License-Identifier: Apache-2.0 */
/* container: one container of the engine socket and its state in siltd: a sandbox with one program,
 * or a sidecar, which has no sandbox. Containers survive a restart of siltd. An app container's
 * sandbox is named `w-` plus part of the SHA-256 of its name; it outlives a container that has
 * ended.
 *
 *   CLEARING --files are gone--> CREATED
 *                                   | start
 *                                   v
 *     .------------ cannot run -- STARTING -- cannot run, builtin --> FAILED --.
 *     |                  ^          | program runs                      ^      |
 *     |            start |          v                                   |      | `stop` fires
 *     |                  |       RUNNING -- ends at once, builtin ------'      |
 *     |                  |        |    \--- signal, builtin --> LEAVING -------+
 *     |                  |        | program or sandbox ends                    |
 *     |                  |        v                                            |
 *     '-----------> EXITED <cut- ENDING <--------------------------------------'
 *
 *   CLEARING -- failure, and no client waits --> STUCK; otherwise that client is told: (gone)
 *   CLEARING, CREATED, EXITED, STUCK -- remove --------------------------------> REMOVING
 *   STARTING to ENDING -- remove --> ENDING_SPARED or ENDING_CONDEMNED -- cut --> REMOVING
 *   ENDING_SPARED -- remove again, by a client that knows its state --> ENDING_CONDEMNED
 *   REMOVING -- files are removed or kept --> (gone)
 *   REMOVING -- failure --> STUCK
 *
 * silt_container_enter is the only function that assigns the state. */
#pragma once

#include "base/list.h"
#include "sandbox/container/spec.h"
#include "sandbox/process/process.h"

enum { SILT_CONTAINERS_MAX = 8192, SILT_CONTROL_PORT = 3000, SILT_LAST_WORDS_MAX = 64 };

struct silt_container;
struct silt_mounting;

/* In the order of a container's life. */
enum silt_container_state {
    SILT_CONTAINER_IS_CREATED,
    SILT_CONTAINER_IS_CLEARING, /* files of an earlier container are being removed */
    SILT_CONTAINER_IS_STARTING,
    SILT_CONTAINER_IS_RUNNING,
    SILT_CONTAINER_IS_LEAVING, /* runs; told to end, does so with leave_code when `stop` fires */
    /* As LEAVING, but its program failed at once: reports why. */
    SILT_CONTAINER_IS_FAILED,
    SILT_CONTAINER_IS_ENDING,           /* its connections are being closed */
    SILT_CONTAINER_IS_ENDING_SPARED,    /* the same, then it is removed; its files may be kept */
    SILT_CONTAINER_IS_ENDING_CONDEMNED, /* the same, then it is removed with its files; saved */
    SILT_CONTAINER_IS_EXITED,
    /* A removal or clearing failed or was interrupted: can only be removed; saved. */
    SILT_CONTAINER_IS_STUCK,
    SILT_CONTAINER_IS_REMOVING,
};

/* Waits for the end or the removal; embedded, must leave before it is freed. */
struct silt_container_wait {
    struct silt_link link;
    struct silt_container *container; /* borrowed */
    bool removed;                     /* waits for the removal */
    bool next;                        /* ignores an end that has already happened */
    void (*on_done)(struct silt_container_wait *w, int32_t code);
};

/* Waits for an operation; embedded, must leave before it is freed. */
struct silt_container_ask {
    struct silt_link link;
    void (*on_done)(struct silt_container_ask *a, const struct silt_error *e); /* e NULL: success */
};

struct silt_container {
    struct silt_containers *all; /* borrowed */
    struct silt_container_row row;
    struct silt_arena arena; /* backs spec */
    struct silt_container_spec spec;
    struct silt_link link;
    enum silt_container_state state;
    char sandbox[SILT_ID_MAX + 1]; /* its id */
    bool builtin;                  /* siltd serves its port SILT_CONTROL_PORT */
    bool reused;                   /* its sandbox has files of an earlier container */
    bool unwatched;     /* ran when siltd started, and no client has waited for its end since */
    bool asked;         /* a client has connected to its control port since its start */
    bool refused;       /* its last start failed with last words, which waiters for its end get */
    int32_t leave_code; /* in LEAVING and FAILED */
    int64_t running_ms; /* start time, monotonic clock; not before siltd's own start */
    int64_t waited_ms;  /* when a client began to wait for its end; 0: none has */
    struct silt_waiter waiter; /* for its sandbox */
    struct silt_process_watch watch;
    /* Borrowed: its program, or the one that prepares it; NULL: none runs. */
    struct silt_process *process;
    /* Borrowed, held: its ended program; NULL: none, or not during this run of siltd. */
    struct silt_process *said;
    /* Readers of its program's output: auto-removal waits for them. */
    uint32_t readers;
    /* For trust.c. */
    void (*on_trusted)(struct silt_container *c, const struct silt_error *e);
    int listen; /* of a sidecar; used by the hooks */
    bool shut;  /* a sidecar that ran before all of Silt stopped: its port must be reopened */
    uint32_t refusals;         /* for a shut sidecar: failed attempts to reopen */
    uint32_t question;         /* of a sidecar: the latest LISTEN; only its answer counts */
    uint32_t unheard;          /* of a sidecar: how often nothing listened on its egress port */
    struct silt_link starters; /* struct silt_container_ask */
    struct silt_link waits;    /* struct silt_container_wait */
    struct silt_link removers; /* struct silt_container_ask */
    struct silt_container_wait
        *kept;      /* borrowed: the wait whose connection silt-super also holds */
    uint32_t drops; /* connections being closed */
    struct silt_timer delay, stop;
    struct silt_mounting *mounting; /* for volume.c; NULL: nothing is being copied */
    struct silt_grave grave;
};

/* last_words.c: why a container ended right after its start. */
struct silt_last_words {
    char sandbox[SILT_ID_MAX + 1]; /* of the container; empty: none */
    char text[440];
};

struct silt_containers_hooks {
    void (*cut)(void *context,
                /* Closes connections that the API serves itself. */
                struct silt_container *c);
    void (*failed)(void *context, struct silt_container *c); /* its last words are known */
    /* A sidecar's socket; takes it. */
    void (*listen)(void *context, struct silt_container *c, int fd);
    void (*unlisten)(void *context, struct silt_container *c);
    /* A client that waited for its end when the previous siltd died; takes it. */
    void (*waits)(void *context, struct silt_container *c, int fd);
    void *context;
};

struct silt_containers {
    struct silt_registry *registry; /* borrowed */
    struct silt_containers_hooks hooks;
    struct silt_link list; /* in creation order */
    size_t count;
    struct silt_map by_name, by_id;
    struct silt_link volumes; /* struct silt_volume */
    size_t volume_count;
    struct silt_last_words words[SILT_LAST_WORDS_MAX];
    size_t next_words;
    int diag; /* base/sock_diag.h; -1: none */
    uint32_t exit_delay_ms, stop_after_ms, keep_s, hold_ms;
    bool max_instances; /* honour the images' setting */
    struct silt_timer upkeep;
};

extern const struct silt_facet silt_container_facet;
/* Call before the registry opens. */
struct silt_containers *silt_containers_new(struct silt_registry *r);
/* A socket that silt-super created (for `question`) or kept (0); takes it. -1: it could not create
 * it. */
void silt_containers_on_listener(struct silt_containers *all, uint64_t number, uint32_t question,
                                 int fd);

/* By name, id or unique prefix of an id. */
struct silt_container *silt_container_find(struct silt_containers *all, silt_slice name);
/* SILT_CONFLICT: the name is taken; SILT_NOT_FOUND: no such image or sidecar. `name` may be
 * empty. */
int silt_container_create(struct silt_containers *all, silt_slice name, silt_slice body,
                          uint32_t uid, struct silt_container **ret, struct silt_error *e);
/* True if it can be started. False: files of an earlier container must be removed first; `a` is
 * called then. */
bool silt_container_is_made(struct silt_container *c, struct silt_container_ask *a);
/* SILT_LIMIT: its image's maximum of instances already runs. */
int silt_container_check_place(struct silt_container *c, struct silt_error *e);
/* It must be made and not running. */
void silt_container_start(struct silt_container *c, struct silt_container_ask *a);
/* SILT_CONFLICT: it is not running. */
int silt_container_kill(struct silt_container *c, int signal, struct silt_error *e);
/* SIGTERM, then SIGKILL after so many seconds. */
int silt_container_stop(struct silt_container *c, uint32_t after_s, struct silt_error *e);
/* Ends it first if it runs. The name is free when `a` (may be NULL) is called. `unsure`: the client
 * may think that it has already ended. */
void silt_container_remove(struct silt_container *c, bool unsure, struct silt_container_ask *a);
/* A client that knows its state repeats a removal in progress: its files are removed, too. */
void silt_container_condemn(struct silt_container *c);
/* True if that has already happened, with the exit code. */
bool silt_container_wait(struct silt_container *c, struct silt_container_wait *w,
                         int32_t *ret_code);
void silt_container_wait_leave(struct silt_container_wait *w);
/* Lets the next siltd answer this wait if this one dies; only the newest wait per container. -1:
 * silt-super already has it. */
void silt_container_wait_keep(struct silt_container_wait *w, int connection);
/* No-op if finished; must be initialized. */
void silt_container_ask_leave(struct silt_container_ask *a);
/* Its sandbox, created and started if needed; calls `w`. */
int silt_container_use(struct silt_container *c, struct silt_waiter *w, struct silt_error *e);
/* The running container whose network this sidecar is; NULL: none. */
struct silt_container *silt_container_behind(struct silt_container *sidecar);
/* Uid of the creator of the container with that number; root if there is none. */
uint32_t silt_containers_owner(const struct silt_registry *r, uint64_t number);
/* It has been started and has not begun to end. */
static inline bool silt_container_is_up(const struct silt_container *c)
{
    return c->state >= SILT_CONTAINER_IS_RUNNING && c->state <= SILT_CONTAINER_IS_FAILED;
}
/* As clients see it: until its end is complete. */
static inline bool silt_container_runs(const struct silt_container *c)
{
    return c->state >= SILT_CONTAINER_IS_RUNNING && c->state <= SILT_CONTAINER_IS_ENDING_CONDEMNED;
}
static inline bool silt_container_has_exited(const struct silt_container *c)
{
    return c->state == SILT_CONTAINER_IS_EXITED || c->state == SILT_CONTAINER_IS_STUCK;
}
/* Its removal has begun, or begins as soon as it has ended. */
static inline bool silt_container_is_going(const struct silt_container *c)
{
    return c->state == SILT_CONTAINER_IS_ENDING_SPARED
           || c->state == SILT_CONTAINER_IS_ENDING_CONDEMNED
           || c->state == SILT_CONTAINER_IS_REMOVING;
}
const char *silt_container_status(const struct silt_container *c);
const char *silt_container_last_words(const struct silt_container *c); /* empty: unknown */
/* Sets its last words. */
void silt_container_note_failure(struct silt_container *c, const struct silt_error *e);
void silt_container_on_asked(struct silt_container *c); /* a client connects to its control port */
/* The process whose log has its program's output; NULL: none, or gone. */
struct silt_process *silt_container_output(const struct silt_container *c);
void silt_container_read_begin(struct silt_container *c);
void silt_container_read_end(struct silt_container *c);

/* kept.c: files of a removed container, kept for the next one of its name. */
struct silt_kept {
    struct silt_sandbox *sandbox; /* borrowed */
    silt_slice name;              /* of the container; in the arena */
    char id[SILT_CONTAINER_ID_SIZE];
};
/* Iterates over all, from *slot = 0 on. */
bool silt_kept_next(const struct silt_containers *all, struct silt_arena *a, uint32_t *slot,
                    struct silt_kept *ret);
/* By name, id or unique prefix of an id. */
bool silt_kept_find(const struct silt_containers *all, struct silt_arena *a, silt_slice name,
                    struct silt_kept *ret);

/* size.c: the class of the Worker that created it; data NULL: none */
silt_slice silt_container_class(const struct silt_container *c);

/* sandbox.c: its processes have ended. */

/* image.c: an image's settings; slices live as long as the image. */
struct silt_container_image {
    char name[SILT_IMAGE_NAME_SIZE]; /* for silt_sandbox_options */
    uint8_t digest[SILT_DIGEST_SIZE];
    bool builtin;
    struct silt_words entrypoint, cmd;
    silt_slice env, workdir, user;
    silt_slice type, max_instances; /* labels; data NULL: not set */
};
int silt_container_image(struct silt_registry *r, silt_slice reference,
                         struct silt_container_image *ret, struct silt_error *e);
