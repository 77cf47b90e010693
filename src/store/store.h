/* SPDX-License-Identifier: Apache-2.0 */
/* store: siltd's persistent state (sandboxes, processes, ports, images and more) in one SQLite file
 * in WAL mode. main owns it. A write goes to the page cache and never waits for the disk
 * (synchronous=NORMAL, checkpoints by another connection on a worker thread), so writes run in the
 * loop. Every call may fail. */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "base/reference.h"
#include "wire/priv.h"

#include <stdbool.h>

enum {
    SILT_IMAGE_NAME_SIZE = SILT_REFERENCE_SIZE,
    SILT_TYPE_SIZE = 32,
    SILT_INCARNATION_SIZE = 21,
    SILT_ALIAS_SIZE = 14,
    SILT_PORT_NAME_MAX = 128,
    SILT_PORT_TOKEN_MAX = 16,
    SILT_SECRET_SIZE = 53,
};

/* Why something ended. An empty cause: nothing to report. */
struct silt_death {
    char cause[16]; /* exit signal oom tcp_memory pids disk timeout idle destroyed daemon_restart
                       host_reboot crash; for contexts also deleted restarted protocol upgraded */
    char message[200];
    int64_t at_ms;
    int32_t exit_code; /* -1: none */
    int32_t signal;    /* 0: none */
    uint64_t limit_bytes, peak_bytes;
};

struct silt_sandbox_row {
    uint32_t slot;
    char id[SILT_ID_MAX + 1]; /* empty: a ready sandbox, not yet claimed */
    char image[SILT_IMAGE_NAME_SIZE];
    uint8_t digest[SILT_DIGEST_SIZE];
    bool host_usr;
    bool ephemeral;
    enum silt_net_mode network;
    char *allow; /* mode allow: the rules, one per line; mode captive: the number of its capture;
                    owned, may be NULL */
    char alias[SILT_ALIAS_SIZE]; /* stands for the id in host names; empty: none */
    bool running; /* as last recorded: checked against silt-super's descriptors at start */
    char type[SILT_TYPE_SIZE]; /* empty: limits of its own */
    struct silt_priv_limits limits;
    char *env; /* NAME=value\0…; owned, may be NULL */
    size_t env_len;
    char *labels;          /* JSON object; owned, may be NULL */
    int64_t sleep_after_s; /* idle time until it is paused; 0: never */
    int64_t stop_after_s;  /* time paused until it is stopped; 0: never */
    bool keep_alive;       /* never paused for being idle */
    bool let_sleep;        /* running processes and terminals do not keep it awake */
    bool remove_after_stop;
    bool auto_snapshot; /* before each command */
    int64_t expires_ms; /* destroyed at this time; 0: never */
    int64_t paused_ms;  /* since when it is paused, or is being paused; 0: it is not */
    int64_t created_ms, started_ms, used_ms;
    char incarnation[SILT_INCARNATION_SIZE];
    struct silt_death death;
};
void silt_sandbox_row_fini(struct silt_sandbox_row *r);

enum { SILT_PROCESS_ID_MAX = 128, SILT_PROCESS_COMMAND_MAX = 64 << 10 };

enum silt_process_status { /* the values are stored in the database */
                           SILT_PROCESS_STARTING = 0,
                           SILT_PROCESS_RUNNING = 1,
                           SILT_PROCESS_COMPLETED = 2, /* exit code 0 */
                           SILT_PROCESS_FAILED = 3,    /* any other exit code */
                           SILT_PROCESS_KILLED =
                               4, /* by the API, its timeout, SIGKILL or SIGTERM */
                           SILT_PROCESS_ERROR =
                               5, /* could not be started, or its sandbox or session ended */
                           SILT_PROCESS_STATUS_MAX
};

/* A background command and its outcome. */
struct silt_process_row {
    uint64_t number; /* of its exec and of its log */
    uint32_t slot;   /* of its sandbox */
    char id[SILT_PROCESS_ID_MAX + 1];
    char *command; /* owned; arguments joined by spaces; cut at SILT_PROCESS_COMMAND_MAX */
    char *session; /* owned; NULL: none */
    char *remark;  /* owned; a line we add to its stderr; may be NULL */
    enum silt_process_status status;
    bool auto_cleanup;
    int32_t pid;                  /* inside the sandbox; 0: never had one */
    int32_t exit_code;            /* -1: none */
    int32_t signal;               /* 0: none */
    int64_t started_ms, ended_ms; /* 0: not yet */
    uint64_t log_bytes;           /* set once it has finished */
    char cause[16];               /* as in struct silt_death; empty: it ended by itself */
};
void silt_process_row_fini(struct silt_process_row *r);

enum silt_language { /* the values are stored in the database */
                     SILT_PYTHON = 0,
                     SILT_JAVASCRIPT = 1,
                     SILT_TYPESCRIPT = 2,
                     SILT_LANGUAGE_MAX
};
enum { SILT_CONTEXT_ID_SIZE = 37 }; /* a UUID */

/* A running interpreter process, so that the next siltd can identify the descriptors silt-super
 * kept for it. */
struct silt_context_row {
    uint64_t number; /* of its exec */
    uint32_t slot;   /* of its sandbox */
    char id[SILT_CONTEXT_ID_SIZE];
    enum silt_language language;
    bool is_default;
    char *cwd; /* owned */
    char *env; /* NAME=value\0…; owned, may be NULL */
    size_t env_len;
    uint32_t timeout_ms; /* per run; 0: none */
    uint32_t count;      /* number of runs, as last recorded */
    int64_t created_ms, used_ms;
    int64_t deadline_ms; /* of the current run, if it has one; 0: none */
};
void silt_context_row_fini(struct silt_context_row *r);

/* An exposed port: a URL leads to this port of a sandbox. */
struct silt_port_row {
    uint32_t slot; /* of its sandbox */
    uint16_t port;
    uint64_t route; /* its number in silt-proxy (wire/preview.h); changes with the token */
    char name[SILT_PORT_NAME_MAX + 1]; /* empty: none */
    char token[SILT_PORT_TOKEN_MAX + 1];
    bool locked; /* private: reachable only by signed URLs */
    int64_t exposed_ms;
};

/* Where the outgoing traffic of captive sandboxes is sent (sandbox/network/intercept.h). */
struct silt_capture_row {
    uint64_t number;
    uint16_t port; /* 0: unknown */
    bool internet;
    char *hostnames;         /* globs, one per line; owned, may be NULL */
    char *certificate, *key; /* of its certificate authority, PEM; owned; NULL: none yet */
};
void silt_capture_row_fini(struct silt_capture_row *r);

struct silt_image_row {
    uint8_t digest[SILT_DIGEST_SIZE];
    uint8_t parent[SILT_DIGEST_SIZE]; /* zeros: none */
    bool layered;   /* it has files of its own on top of its parent's; an unlayered image with a
                       parent has exactly the parent's files */
    bool host_usr;  /* uses the machine's /usr */
    uint64_t bytes; /* of its own files */
    int64_t created_ms;
    char *config; /* sandbox/core/image_config.h; owned, never NULL in the store */
};

enum {
    SILT_SNAPSHOT_ID_SIZE = 22, /* snap_ and 16 random characters */
    SILT_SNAPSHOT_NAME_MAX = 128,
};

/* The files of a sandbox at one time, and what its row was. */
struct silt_snapshot_row {
    char id[SILT_SNAPSHOT_ID_SIZE];
    uint8_t digest[SILT_DIGEST_SIZE]; /* of the image that holds its files */
    char sandbox[SILT_ID_MAX + 1];    /* which may be gone */
    char *name;                       /* owned; NULL: none */
    uint64_t bytes;                   /* disk usage of the sandbox */
    int64_t created_ms, expires_ms;   /* 0: never */
    char *record; /* the sandbox, as silt_recovery_write_sandbox encodes it; owned */
    size_t record_len;
    bool automatic; /* goes with its sandbox */
};
void silt_snapshot_row_fini(struct silt_snapshot_row *r);

enum { SILT_HISTORY_COMMAND_MAX = 1024, SILT_HISTORY_PROBLEM_SIZE = 160 };

/* A command of a sandbox that keeps snapshots. */
struct silt_history_row {
    uint32_t slot;   /* of its sandbox */
    uint64_t number; /* of its exec */
    char command[SILT_HISTORY_COMMAND_MAX + 1];
    int64_t at_ms;
    bool ended;
    int32_t exit_code;                       /* of one that has ended; -1: unknown */
    char snapshot[SILT_SNAPSHOT_ID_SIZE];    /* the files before it; empty: none */
    char problem[SILT_HISTORY_PROBLEM_SIZE]; /* why there is none; empty: nothing to report */
};

enum { SILT_CONTAINER_ID_SIZE = 65, SILT_CONTAINER_NAME_MAX = 255 };

enum silt_container_status { /* the values are stored in the database */
                             SILT_CONTAINER_CREATED = 0,
                             SILT_CONTAINER_RUNNING = 1,
                             SILT_CONTAINER_EXITED = 2,
                             SILT_CONTAINER_GOING = 3, /* exited and being removed with its files;
                                                          an older siltd treats it as EXITED */
                             SILT_CONTAINER_STATUS_MAX
};

/* A container of the engine socket. */
struct silt_container_row {
    char id[SILT_CONTAINER_ID_SIZE];
    char *name;   /* owned */
    uint32_t uid; /* of the user who created it */
    enum silt_container_status status;
    int32_t exit_code;
    uint64_t number; /* sidecars: of the listening socket */
    int64_t created_ms, started_ms, ended_ms;
    uint8_t digest[SILT_DIGEST_SIZE]; /* of its image at creation */
    char *body;                       /* the JSON it was created with; owned */
    uint16_t port; /* sidecars: of the listening socket, on 127.0.0.1; 0: never had one */
    char *copies;  /* NUL-terminated paths: where volumes were copied to at the last start; NULL:
                      none; owned */
    size_t copies_len;
};
void silt_container_row_fini(struct silt_container_row *r);

/* A volume of the engine socket. */
struct silt_volume_row {
    char *name;   /* owned */
    char *labels; /* JSON object; owned, may be NULL */
    int64_t created_ms;
};
void silt_volume_row_fini(struct silt_volume_row *r);

enum silt_event_type { /* the values are stored in the database */
                       SILT_EVENT_CREATED = 0,
                       SILT_EVENT_STARTED = 1, /* it has processes; details: incarnation */
                       SILT_EVENT_PAUSED = 2,
                       SILT_EVENT_RESUMED = 3,
                       SILT_EVENT_STOPPED = 4, /* as wanted; details: cause, message */
                       SILT_EVENT_DIED = 5,    /* unexpectedly; details: cause, message, … */
                       SILT_EVENT_SNAPSHOT = 6,
                       SILT_EVENT_FORKED = 7,
                       SILT_EVENT_ROLLED_BACK = 8,
                       SILT_EVENT_DESTROYED = 9,
                       SILT_EVENT_EXPOSED = 10,
                       SILT_EVENT_DENIED = 11, /* a connection or lookup */
                       SILT_EVENT_DISK_FULL = 12,
                       SILT_EVENT_TYPE_MAX
};

struct silt_event_row {
    uint64_t number; /* its cursor: grows from event to event, not by one */
    int64_t at_ms;
    enum silt_event_type type;
    char id[SILT_ID_MAX + 1]; /* of the sandbox; empty: none */
    char *details;            /* JSON object; owned, may be NULL */
};
void silt_event_row_fini(struct silt_event_row *r);

struct silt_store;
int silt_store_open(const char *path, struct silt_store **ret, struct silt_error *e);
void silt_store_close(struct silt_store *s);

/* Restores the reserve that lets the database be written on a full disk. SILT_NO_SPACE: the disk
 * has no room for it, and no row is admitted until a later call succeeds. Call it after the first
 * write, which shows where the WAL ends. */
int silt_store_reserve(struct silt_store *s, struct silt_error *e);
bool silt_store_is_full(const struct silt_store *s);
/* Ask this before adding a row that a client waits for: the reserve is kept for rows that change or
 * go. SILT_NO_SPACE when the disk is full. */
int silt_store_admit(struct silt_store *s, struct silt_error *e);

/* The callee owns the row: it frees or keeps env and labels. */
int silt_store_each_sandbox(struct silt_store *s,
                            void (*each)(void *context, struct silt_sandbox_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_sandbox(struct silt_store *s, const struct silt_sandbox_row *row,
                           struct silt_error *e);
/* Stores the row and its network rules in one transaction: put_sandbox does not write the rules. */
int silt_store_put_policy(struct silt_store *s, const struct silt_sandbox_row *row,
                          struct silt_error *e);
/* Everything of a slot: the sandbox, its rules, processes, contexts, ports and alias, in one
 * transaction. Writes nothing if there is nothing. */
int silt_store_remove_sandbox(struct silt_store *s, uint32_t slot, struct silt_error *e);

/* The callee owns the row: it frees or keeps its strings. In order of numbers. Deletes rows of
 * removed sandboxes first. */
int silt_store_each_process(struct silt_store *s,
                            void (*each)(void *context, struct silt_process_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_process(struct silt_store *s, const struct silt_process_row *row,
                           struct silt_error *e);
int silt_store_remove_process(struct silt_store *s, const struct silt_process_row *row,
                              struct silt_error *e);

/* The callee owns the row: it frees or keeps its strings. In order of numbers. Deletes rows of
 * removed sandboxes first. */
int silt_store_each_context(struct silt_store *s,
                            void (*each)(void *context, struct silt_context_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_context(struct silt_store *s, const struct silt_context_row *row,
                           struct silt_error *e);
int silt_store_remove_context(struct silt_store *s, const struct silt_context_row *row,
                              struct silt_error *e);

/* In order of slots and ports. Deletes rows of removed sandboxes first. */
int silt_store_each_port(struct silt_store *s,
                         void (*each)(void *context, const struct silt_port_row *row),
                         void *context, struct silt_error *e);
int silt_store_put_port(struct silt_store *s, const struct silt_port_row *row,
                        struct silt_error *e);
int silt_store_remove_port(struct silt_store *s, const struct silt_port_row *row,
                           struct silt_error *e);
/* All ports of a slot, and its alias. */
int silt_store_remove_ports(struct silt_store *s, uint32_t slot, struct silt_error *e);
int silt_store_put_alias(struct silt_store *s, const struct silt_sandbox_row *row,
                         struct silt_error *e);
/* A random string, created on first use and never changed. */
int silt_store_secret(struct silt_store *s, const char *name, char ret[SILT_SECRET_SIZE],
                      struct silt_error *e);

/* The callee owns the row: it frees or keeps its strings. */
int silt_store_each_capture(struct silt_store *s,
                            void (*each)(void *context, struct silt_capture_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_capture(struct silt_store *s, const struct silt_capture_row *row,
                           struct silt_error *e);
int silt_store_remove_capture(struct silt_store *s, uint64_t number, struct silt_error *e);

/* The callee owns the row: it frees or keeps config. */
int silt_store_each_image(struct silt_store *s,
                          void (*each)(void *context, struct silt_image_row *row), void *context,
                          struct silt_error *e);
int silt_store_put_image(struct silt_store *s, const struct silt_image_row *row,
                         struct silt_error *e);
int silt_store_remove_image(struct silt_store *s, const uint8_t digest[SILT_DIGEST_SIZE],
                            struct silt_error *e);
int silt_store_each_image_name(struct silt_store *s,
                               void (*each)(void *context, const char *name,
                                            const uint8_t digest[SILT_DIGEST_SIZE]),
                               void *context, struct silt_error *e);
/* A name of another image moves to this one. */
int silt_store_put_image_name(struct silt_store *s, const char *name,
                              const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
int silt_store_remove_image_name(struct silt_store *s, const char *name, struct silt_error *e);

/* The callee owns the row. In order of creation. */
int silt_store_each_container(struct silt_store *s,
                              void (*each)(void *context, struct silt_container_row *row),
                              void *context, struct silt_error *e);
int silt_store_put_container(struct silt_store *s, const struct silt_container_row *row,
                             struct silt_error *e);
int silt_store_remove_container(struct silt_store *s, const char *id, struct silt_error *e);
int silt_store_each_volume(struct silt_store *s,
                           void (*each)(void *context, struct silt_volume_row *row), void *context,
                           struct silt_error *e);
int silt_store_put_volume(struct silt_store *s, const struct silt_volume_row *row,
                          struct silt_error *e);
int silt_store_remove_volume(struct silt_store *s, const char *name, struct silt_error *e);

/* The callee owns the row: it frees or keeps its strings. In order of creation. */
int silt_store_each_snapshot(struct silt_store *s,
                             void (*each)(void *context, struct silt_snapshot_row *row),
                             void *context, struct silt_error *e);
int silt_store_put_snapshot(struct silt_store *s, const struct silt_snapshot_row *row,
                            struct silt_error *e);
int silt_store_remove_snapshot(struct silt_store *s, const char *id, struct silt_error *e);

/* In order of time; removed together with the sandbox. */
int silt_store_each_history(struct silt_store *s,
                            void (*each)(void *context, const struct silt_history_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_history(struct silt_store *s, const struct silt_history_row *row,
                           struct silt_error *e);
int silt_store_remove_history(struct silt_store *s, const struct silt_history_row *row,
                              struct silt_error *e);

/* A build step and the image it produced; the most recently used comes last. */
struct silt_step_row {
    uint8_t key[SILT_DIGEST_SIZE], digest[SILT_DIGEST_SIZE];
    int64_t used_ms;
};
int silt_store_each_step(struct silt_store *s,
                         void (*each)(void *context, const struct silt_step_row *row),
                         void *context, struct silt_error *e);
int silt_store_put_step(struct silt_store *s, const struct silt_step_row *row,
                        struct silt_error *e);
int silt_store_remove_step(struct silt_store *s, const struct silt_step_row *row,
                           struct silt_error *e);

/* What a session keeps over a stop (sandbox/core/session_state.h). The strings are borrowed. An
 * empty name: variables for all new sessions of the sandbox. */
struct silt_session_row {
    uint32_t slot; /* of its sandbox */
    const char *name;
    int version; /* of the format of env */
    uint32_t timeout_ms;
    const char *cwd; /* NULL: unknown */
    const char *env;
    size_t env_len;
};
int silt_store_put_session(struct silt_store *s, const struct silt_session_row *row,
                           struct silt_error *e);
int silt_store_remove_session(struct silt_store *s, const struct silt_session_row *row,
                              struct silt_error *e);
/* Deletes rows of removed sandboxes first. */
int silt_store_each_session(struct silt_store *s,
                            void (*each)(void *context, const struct silt_session_row *row),
                            void *context, struct silt_error *e);

/* Events (sandbox/core/journal.h). */
int silt_store_put_event(struct silt_store *s, const struct silt_event_row *row,
                         struct silt_error *e);
int silt_store_trim_events(struct silt_store *s, uint32_t kept, struct silt_error *e);
/* The number of the oldest and of the newest event; 0: there is none. */
int silt_store_first_event(struct silt_store *s, uint64_t *ret, struct silt_error *e);
int silt_store_last_event(struct silt_store *s, uint64_t *ret, struct silt_error *e);
/* At most `most` events between the two numbers, oldest first; borrowed rows. Returns how many. */
int silt_store_each_event(struct silt_store *s, uint64_t after, uint64_t before, uint32_t most,
                          void (*each)(void *context, const struct silt_event_row *row),
                          void *context, struct silt_error *e);

/* Compares the machine's boot id with the last recorded one; true if it has rebooted. */
int silt_store_rebooted(struct silt_store *s, const char *boot_id, bool *ret, struct silt_error *e);

/* When this siltd started: wall_ms or, if the clock was set back, one day after the latest earlier
 * start. */
int silt_store_start_time(struct silt_store *s, int64_t wall_ms, int64_t *ret_ms,
                          struct silt_error *e);

/* The state of the recovery records (store/recovery.h) relative to this database; the values are
 * stored in it. */
enum silt_store_records {
    SILT_RECORDS_UNREAD = 0,    /* the database is new: restore it from the records */
    SILT_RECORDS_UNWRITTEN = 1, /* the database predates the records: write them */
    SILT_RECORDS_KEPT = 2,
    SILT_RECORDS_MAX
};
int silt_store_records(struct silt_store *s, enum silt_store_records *ret, struct silt_error *e);
int silt_store_set_records(struct silt_store *s, enum silt_store_records state,
                           struct silt_error *e);
/* Writes up to the end are one transaction. */
int silt_store_begin(struct silt_store *s, struct silt_error *e);
int silt_store_end(struct silt_store *s, bool commit, struct silt_error *e);

/* Uses a connection of its own; call it on one thread at a time, any thread. */
int silt_store_checkpoint(struct silt_store *s, struct silt_error *e);
