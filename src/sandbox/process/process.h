/* SPDX-License-Identifier: Apache-2.0 */
/* process: a background command of a sandbox and its record, which outlives the command, siltd and
 * the sandbox's sleep. Output goes to the process's log (log_follower.h reads it). Owned by the
 * sandbox in siltd; silt-init runs the command.
 *
 *   STARTING --started--> RUNNING --ended--> COMPLETED, FAILED, KILLED
 *       \----failed----------\---lost------> ERROR */
#pragma once

#include "sandbox/core/exec.h"
#include "sandbox/process/flush.h"
#include "wire/log.h"

enum {
    SILT_PROCESS_GRACE_MS = 5000,
    SILT_OPEN_LOGS_MAX = 8192, /* further logs are closed once their process runs */
};

struct silt_log_follower;

/* An open log, reference-counted by its readers. */
struct silt_log_file {
    struct silt_registry *registry; /* borrowed */
    int fd;
    uint32_t users;
};
struct silt_log_file *silt_log_file_new(struct silt_registry *r, int fd); /* takes fd */
struct silt_log_file *silt_log_file_share(struct silt_log_file *f);
void silt_log_file_leave(struct silt_log_file *f); /* NULL is allowed */

/*   UNKNOWN --asked--> OPENING --answer--> OPEN, ABSENT (no log) or, on failure, UNKNOWN */
enum silt_process_log {
    SILT_PROCESS_LOG_UNKNOWN,
    SILT_PROCESS_LOG_OPENING,
    SILT_PROCESS_LOG_OPEN,
    SILT_PROCESS_LOG_ABSENT
};

struct silt_process {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;        /* sorted by number */
    bool listed;                  /* otherwise freed with its last user */
    struct silt_process_row row;
    struct silt_exec_sink sink;
    struct silt_exec *exec;       /* NULL: not running, as far as the agent has reported */
    struct silt_session *session; /* borrowed; STARTING only */
    uint64_t session_number;      /* set once it runs; 0: none */
    uint32_t timeout_ms;
    bool holds;                /* started for a reader that it waits for */
    struct silt_agent_end end; /* as reported, once it has ended */
    bool killed;               /* through the API */
    bool orphaned;             /* its session has ended, which ends it */
    bool settling;             /* its exit is being looked up in its log */
    int doomed_by;             /* STARTING: the signal to send once it has started; 0: none */
    uint32_t doomed_grace_ms;
    enum silt_process_log log_state;
    struct silt_log_file *log; /* OPEN */
    bool told_to_follow;       /* the agent owes us a LOGGED */
    struct silt_flush flush;
    struct silt_log_follower *holder; /* the reader it waits for; NULL: none */
    struct silt_link follows;         /* struct silt_log_follower */
    struct silt_link watches;         /* struct silt_process_watch */
    struct silt_stdin *in;            /* present writer of its stdin; borrowed */
    bool stdin_owed;                  /* the agent has not yet acknowledged the last bytes */
    uint32_t busy;                    /* requests and jobs that will call back */
    struct silt_timer cleanup;
    struct silt_grave grave;
};

enum silt_process_event {
    SILT_PROCESS_STARTED,
    SILT_PROCESS_NOT_STARTED, /* reason in `e` */
    /* The session's shell had already ended (row.exit_code); no record is kept. */
    SILT_PROCESS_NO_SHELL,
    SILT_PROCESS_ENDED,
};

/* Called once, on the next event. Embedded in its user, which may leave earlier. */
struct silt_process_watch {
    struct silt_link link;
    void (*on_event)(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *e);
};
void silt_process_watch(struct silt_process *p, struct silt_process_watch *w);
/* No-op if not watching; must be initialized. */
void silt_process_unwatch(struct silt_process_watch *w);

struct silt_stdin { /* borrowed: must detach (p->in = NULL) before it is freed */
    /* The last bytes written, perhaps by another writer, are in the pipe; `closed`: the process no
     * longer reads it. */
    void (*on_taken)(struct silt_stdin *in, bool closed);
};
/* At most one frame, and only when stdin_owed is false. */
void silt_process_write(struct silt_process *p, silt_slice bytes, bool close);

struct silt_process_request {
    /* mode BACKGROUND or PLAIN; number and SILT_START_LOG are set by silt_process_start. */
    struct silt_exec_request exec;
    silt_slice id;      /* empty: generate one */
    silt_slice session; /* by name; empty: none */
    bool auto_cleanup;  /* remove the record one minute after the end */
};

/* 1 to 128 of [A-Za-z0-9._:@-], and not a word used as a route. */
bool silt_process_id_is_good(silt_slice id);
struct silt_process *silt_process_find(struct silt_sandbox *s,
                                       silt_slice id); /* never a terminal */
static inline bool silt_process_is_over(const struct silt_process *p)
{
    return p->row.status > SILT_PROCESS_RUNNING;
}
/* A shell on a terminal (sandbox/process/terminal.h). Its id cannot be chosen by clients, lists
 * omit it, and its record is removed when it ends. */
static inline bool silt_process_is_terminal(const struct silt_process *p)
{
    return p->row.id[0] == '/';
}
/* Calls `w` once it has started or failed. SILT_CONFLICT: a process of that id still runs.
 * SILT_LIMIT: too many run. `q` is copied. */
int silt_process_start(struct silt_sandbox *s, struct silt_session *session,
                       const struct silt_process_request *q, struct silt_process_watch *w,
                       struct silt_process **ret, struct silt_error *e);
/* Signals the whole tree. With a grace period SIGKILL follows. After a SIGKILL it ends only when
 * its whole tree is gone. */
void silt_process_kill(struct silt_process *p, int signal, uint32_t grace_ms);
/* While held, the process is not freed and its log stays open, even if its record is removed. */
void silt_process_hold(struct silt_process *p);
void silt_process_release(struct silt_process *p);
/* Removes the record and log of a process that has ended. */
void silt_process_remove(struct silt_process *p);

extern const struct silt_facet silt_process_facet;

/* The rest is for this room. */
/* For processes that should run but that no agent has reported: looks in their logs for how they
 * ended. */
void silt_process_settle_all(struct silt_sandbox *s);
/* Followers get the result through silt_log_follower_log_is_here. */
void silt_process_open_log(struct silt_process *p);
void silt_process_on_end(struct silt_process *p, const struct silt_agent_end *end,
                         int64_t ended_ms);
void silt_process_on_lost(struct silt_process *p, const char *cause);
void silt_process_unuse(struct silt_process *p); /* may free it */
