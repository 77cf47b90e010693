/* SPDX-License-Identifier: Apache-2.0 */
/* store: what siltd remembers over restarts: sandboxes, processes, ports and images, one SQLite file in WAL mode. A write
 * is a write to the page cache and never waits for the disk (synchronous=NORMAL, checkpoints by another
 * connection on a worker thread), so it is done in the loop. */
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

/* Why something ended. An empty cause: nothing to tell. */
struct silt_death {
    char cause[16]; /* exit signal oom pids disk timeout idle destroyed daemon_restart host_reboot crash; of contexts also deleted restarted protocol upgraded */
    char message[200];
    int64_t at_ms;
    int32_t exit_code; /* -1: none */
    int32_t signal;    /* 0: none */
    uint64_t limit_bytes, peak_bytes;
};

struct silt_sandbox_row {
    uint32_t slot;
    char id[SILT_ID_MAX + 1]; /* empty: a ready sandbox that nobody has claimed */
    char image[SILT_IMAGE_NAME_SIZE];
    uint8_t digest[SILT_DIGEST_SIZE];
    bool host_usr;
    bool ephemeral;
    enum silt_net_mode network;
    char *allow; /* rules of mode allow, one a line; in mode captive the number of its capture; owned, may be NULL */
    char alias[SILT_ALIAS_SIZE]; /* what stands for the id in host names; empty: it has none */
    bool running; /* as far as we know: checked against silt-super's descriptors at start */
    char type[SILT_TYPE_SIZE]; /* empty: own numbers */
    struct silt_priv_limits limits;
    char *env;    /* NAME=value\0…; owned, may be NULL */
    size_t env_len;
    char *labels; /* JSON object; owned, may be NULL */
    int64_t sleep_after_s; /* 0: never */
    int64_t created_ms, started_ms, used_ms;
    char incarnation[SILT_INCARNATION_SIZE];
    struct silt_death death;
};
void silt_sandbox_row_fini(struct silt_sandbox_row *r);

enum { SILT_PROCESS_ID_MAX = 128, SILT_PROCESS_COMMAND_MAX = 64 << 10 };

enum silt_process_status { /* the numbers are in the database */
    SILT_PROCESS_STARTING = 0,
    SILT_PROCESS_RUNNING = 1,
    SILT_PROCESS_COMPLETED = 2, /* exit code 0 */
    SILT_PROCESS_FAILED = 3,    /* another one */
    SILT_PROCESS_KILLED = 4,    /* through the API, by its timeout, by SIGKILL or SIGTERM */
    SILT_PROCESS_ERROR = 5,     /* could not be started, or what it ran in ended */
    SILT_PROCESS_STATUS_MAX
};

/* A background command and what became of it. */
struct silt_process_row {
    uint64_t number; /* of its exec and of its log */
    uint32_t slot;   /* of its sandbox */
    char id[SILT_PROCESS_ID_MAX + 1];
    char *command;    /* owned; arguments are separated by spaces; cut at SILT_PROCESS_COMMAND_MAX */
    char *session;    /* owned; NULL: none */
    char *remark;     /* owned; what we add to its stderr; may be NULL */
    enum silt_process_status status;
    bool auto_cleanup;
    int32_t pid; /* inside; 0: never had one */
    int32_t exit_code; /* -1: none */
    int32_t signal;    /* 0: none */
    int64_t started_ms, ended_ms; /* 0: not yet */
    uint64_t log_bytes; /* of a finished one */
    char cause[16];     /* as in struct silt_death; empty: an ordinary end */
};
void silt_process_row_fini(struct silt_process_row *r);

enum silt_language { /* the numbers are in the database */
    SILT_PYTHON = 0,
    SILT_JAVASCRIPT = 1,
    SILT_TYPESCRIPT = 2,
    SILT_LANGUAGE_MAX
};
enum { SILT_CONTEXT_ID_SIZE = 37 }; /* a UUID */

/* An interpreter process that runs, so that the next siltd knows what silt-super kept for it. */
struct silt_context_row {
    uint64_t number; /* of its exec */
    uint32_t slot;   /* of its sandbox */
    char id[SILT_CONTEXT_ID_SIZE];
    enum silt_language language;
    bool is_default;
    char *cwd; /* owned */
    char *env; /* NAME=value\0…; owned, may be NULL */
    size_t env_len;
    uint32_t timeout_ms; /* of each run; 0: none */
    uint32_t count;      /* runs so far, as far as written down */
    int64_t created_ms, used_ms;
    int64_t deadline_ms; /* of the run under way, if it has one; 0: none */
};
void silt_context_row_fini(struct silt_context_row *r);

/* A port of a sandbox that visitors reach by a URL. */
struct silt_port_row {
    uint32_t slot; /* of its sandbox */
    uint16_t port;
    uint64_t route; /* as silt-proxy knows it (wire/preview.h); a new one when the token changes */
    char name[SILT_PORT_NAME_MAX + 1]; /* empty: none */
    char token[SILT_PORT_TOKEN_MAX + 1];
    bool locked; /* private: only by signed URLs */
    int64_t exposed_ms;
};

/* Where the way out of captive sandboxes leads (sandbox/capture.h). */
struct silt_capture_row {
    uint64_t number;
    uint16_t port; /* 0: not known */
    bool internet;
    char *hostnames; /* globs, one a line; owned, may be NULL */
    char *certificate, *key; /* of its authority, PEM; owned; NULL: there is none yet */
};
void silt_capture_row_fini(struct silt_capture_row *r);

struct silt_image_row {
    uint8_t digest[SILT_DIGEST_SIZE];
    uint8_t parent[SILT_DIGEST_SIZE]; /* zeros: none */
    bool layered;  /* it has files of its own on top of its parent's; without it, and with a parent, it has those */
    bool host_usr; /* over the machine's /usr */
    uint64_t bytes; /* of its own files */
    int64_t created_ms;
    char *config; /* sandbox/image_config.h; owned, never NULL in the store */
};

enum { SILT_CONTAINER_ID_SIZE = 65, SILT_CONTAINER_NAME_MAX = 255 };

enum silt_container_status { /* the numbers are in the database */
    SILT_CONTAINER_CREATED = 0,
    SILT_CONTAINER_RUNNING = 1,
    SILT_CONTAINER_EXITED = 2,
    SILT_CONTAINER_GOING = 3, /* it ended in order to be removed with its files; an older siltd takes it for EXITED */
    SILT_CONTAINER_STATUS_MAX
};

/* A container of the engine socket. */
struct silt_container_row {
    char id[SILT_CONTAINER_ID_SIZE];
    char *name; /* owned */
    uint32_t uid; /* who created it */
    enum silt_container_status status;
    int32_t exit_code;
    uint64_t number; /* of a sidecar: of its listening socket */
    int64_t created_ms, started_ms, ended_ms;
    uint8_t digest[SILT_DIGEST_SIZE]; /* of its image, when it was made */
    char *body;  /* what it was created with, JSON; owned */
    uint16_t port; /* of a sidecar: of its listening socket, on 127.0.0.1; 0: it never had one */
};
void silt_container_row_fini(struct silt_container_row *r);

/* A volume of the engine socket. */
struct silt_volume_row {
    char *name;   /* owned */
    char *labels; /* JSON object; owned, may be NULL */
    int64_t created_ms;
};
void silt_volume_row_fini(struct silt_volume_row *r);

struct silt_store;
int silt_store_open(const char *path, struct silt_store **ret, struct silt_error *e);
void silt_store_close(struct silt_store *s);

/* The row is the callee's: it frees or keeps env and labels. */
int silt_store_each_sandbox(struct silt_store *s, void (*each)(void *context, struct silt_sandbox_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_sandbox(struct silt_store *s, const struct silt_sandbox_row *row, struct silt_error *e);
/* The same and its rules, both or none: put_sandbox leaves these as they are. */
int silt_store_put_policy(struct silt_store *s, const struct silt_sandbox_row *row, struct silt_error *e);
int silt_store_remove_sandbox(struct silt_store *s, uint32_t slot, struct silt_error *e);

/* The row is the callee's: it frees or keeps its strings. In the order of numbers. Those whose sandbox is gone
 * go first. */
int silt_store_each_process(struct silt_store *s, void (*each)(void *context, struct silt_process_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_process(struct silt_store *s, const struct silt_process_row *row, struct silt_error *e);
int silt_store_remove_process(struct silt_store *s, const struct silt_process_row *row, struct silt_error *e);
/* All those of a slot. */
int silt_store_remove_processes(struct silt_store *s, uint32_t slot, struct silt_error *e);

/* The row is the callee's: it frees or keeps its strings. In the order of numbers. Those whose sandbox is gone
 * go first. */
int silt_store_each_context(struct silt_store *s, void (*each)(void *context, struct silt_context_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_context(struct silt_store *s, const struct silt_context_row *row, struct silt_error *e);
int silt_store_remove_context(struct silt_store *s, const struct silt_context_row *row, struct silt_error *e);
/* All those of a slot. */
int silt_store_remove_contexts(struct silt_store *s, uint32_t slot, struct silt_error *e);

/* In the order of slots and ports. Those whose sandbox is gone go first. */
int silt_store_each_port(struct silt_store *s, void (*each)(void *context, const struct silt_port_row *row),
                         void *context, struct silt_error *e);
int silt_store_put_port(struct silt_store *s, const struct silt_port_row *row, struct silt_error *e);
int silt_store_remove_port(struct silt_store *s, const struct silt_port_row *row, struct silt_error *e);
/* All those of a slot, and its alias. */
int silt_store_remove_ports(struct silt_store *s, uint32_t slot, struct silt_error *e);
int silt_store_put_alias(struct silt_store *s, const struct silt_sandbox_row *row, struct silt_error *e);
/* A random text that is made once and never changes. */
int silt_store_secret(struct silt_store *s, const char *name, char ret[SILT_SECRET_SIZE], struct silt_error *e);

/* The row is the callee's: it frees or keeps its texts. */
int silt_store_each_capture(struct silt_store *s, void (*each)(void *context, struct silt_capture_row *row),
                            void *context, struct silt_error *e);
int silt_store_put_capture(struct silt_store *s, const struct silt_capture_row *row, struct silt_error *e);
int silt_store_remove_capture(struct silt_store *s, uint64_t number, struct silt_error *e);

/* The row is the callee's: it frees or keeps config. */
int silt_store_each_image(struct silt_store *s, void (*each)(void *context, struct silt_image_row *row), void *context,
                          struct silt_error *e);
int silt_store_put_image(struct silt_store *s, const struct silt_image_row *row, struct silt_error *e);
int silt_store_remove_image(struct silt_store *s, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e);
int silt_store_each_image_name(struct silt_store *s,
                               void (*each)(void *context, const char *name, const uint8_t digest[SILT_DIGEST_SIZE]),
                               void *context, struct silt_error *e);
/* One that another image has moves to this one. */
int silt_store_put_image_name(struct silt_store *s, const char *name, const uint8_t digest[SILT_DIGEST_SIZE],
                              struct silt_error *e);
int silt_store_remove_image_name(struct silt_store *s, const char *name, struct silt_error *e);

/* The row is the callee's. In the order of their making. */
int silt_store_each_container(struct silt_store *s, void (*each)(void *context, struct silt_container_row *row),
                              void *context, struct silt_error *e);
int silt_store_put_container(struct silt_store *s, const struct silt_container_row *row, struct silt_error *e);
int silt_store_remove_container(struct silt_store *s, const char *id, struct silt_error *e);
int silt_store_each_volume(struct silt_store *s, void (*each)(void *context, struct silt_volume_row *row),
                           void *context, struct silt_error *e);
int silt_store_put_volume(struct silt_store *s, const struct silt_volume_row *row, struct silt_error *e);
int silt_store_remove_volume(struct silt_store *s, const char *name, struct silt_error *e);

/* A step of a build and the image it led to; the one used last comes last. */
struct silt_step_row {
    uint8_t key[SILT_DIGEST_SIZE], digest[SILT_DIGEST_SIZE];
    int64_t used_ms;
};
int silt_store_each_step(struct silt_store *s, void (*each)(void *context, const struct silt_step_row *row), void *context,
                         struct silt_error *e);
int silt_store_put_step(struct silt_store *s, const struct silt_step_row *row, struct silt_error *e);
int silt_store_remove_step(struct silt_store *s, const struct silt_step_row *row, struct silt_error *e);

/* The machine's boot when we last ran; true when it is another one now. */
int silt_store_rebooted(struct silt_store *s, const char *boot_id, bool *ret, struct silt_error *e);

/* When this siltd started: wall_ms, but after the clock was set back a day later than the latest start before. */
int silt_store_start_time(struct silt_store *s, int64_t wall_ms, int64_t *ret_ms, struct silt_error *e);

/* How the recovery records (store/recovery.h) and this database stand to each other; the numbers are in it. */
enum silt_store_records {
    SILT_RECORDS_UNREAD = 0,    /* it is new: what there is has to be found again */
    SILT_RECORDS_UNWRITTEN = 1, /* it is older than records are */
    SILT_RECORDS_KEPT = 2,
    SILT_RECORDS_MAX
};
int silt_store_records(struct silt_store *s, enum silt_store_records *ret, struct silt_error *e);
int silt_store_set_records(struct silt_store *s, enum silt_store_records state, struct silt_error *e);
/* What is written in between happens as a whole or not at all. */
int silt_store_begin(struct silt_store *s, struct silt_error *e);
int silt_store_end(struct silt_store *s, bool commit, struct silt_error *e);

/* On any one thread at a time: it has a connection of its own. */
int silt_store_checkpoint(struct silt_store *s, struct silt_error *e);
