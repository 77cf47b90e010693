/* SPDX-License-Identifier: Apache-2.0 */
/* process: a background command of a sandbox and the record of it, which outlives the command, siltd and the
 * sandbox's sleep. Its output is in its log; follow.h reads that.
 *
 *   STARTING --started--> RUNNING --ended--> COMPLETED, FAILED, KILLED
 *       \----failed----------\---lost------> ERROR                       */
#pragma once

#include "sandbox/exec.h"
#include "wire/log.h"

enum {
    SILT_PROCESS_GRACE_MS = 5000,
    SILT_OPEN_LOGS_MAX = 8192, /* more are closed again once their process runs */
};

struct silt_follow;

/* An open log. Everybody who reads it has a share of it. */
struct silt_log_file {
    struct silt_registry *registry; /* borrowed */
    int fd;
    uint32_t users;
};
struct silt_log_file *silt_log_file_new(struct silt_registry *r, int fd); /* takes fd */
struct silt_log_file *silt_log_file_share(struct silt_log_file *f);
void silt_log_file_leave(struct silt_log_file *f); /* NULL is fine */

/*   UNKNOWN --asked--> OPENING --answer--> OPEN, ABSENT (there is none) or UNKNOWN again (it failed) */
enum silt_process_log { SILT_PROCESS_LOG_UNKNOWN, SILT_PROCESS_LOG_OPENING, SILT_PROCESS_LOG_OPEN, SILT_PROCESS_LOG_ABSENT };

struct silt_process {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;        /* in the order of numbers */
    bool listed;                  /* else it goes with its last user */
    struct silt_process_row row;
    struct silt_exec_sink sink;
    struct silt_exec *exec; /* NULL: it does not run, as far as its agent has told */
    struct silt_session *session; /* borrowed; STARTING only */
    uint64_t session_number;      /* once it runs; 0: none */
    uint32_t timeout_ms;
    bool holds;        /* it was started for a reader that it waits for */
    struct silt_agent_end end; /* as it was told, once it is over */
    bool killed;       /* through the API */
    bool orphaned;     /* its session has ended: so does it */
    bool settling;     /* its end is being looked for in its log */
    int doomed_by;     /* STARTING: the signal it gets when it began; 0: none */
    uint32_t doomed_grace_ms;
    enum silt_process_log log_state;
    struct silt_log_file *log; /* OPEN */
    bool told_to_follow; /* its agent owes us a LOGGED */
    struct silt_follow *holder; /* the reader it waits for; NULL: it waits for nobody */
    struct silt_link follows;   /* struct silt_follow */
    struct silt_link watches;   /* struct silt_process_watch */
    struct silt_stdin *in;      /* who writes its stdin now; borrowed */
    bool stdin_owed;            /* its agent has not told yet that it took the last bytes */
    uint32_t busy;              /* questions and jobs that will come back to it */
    struct silt_timer cleanup;
    struct silt_grave grave;
};

enum silt_process_event {
    SILT_PROCESS_STARTED,
    SILT_PROCESS_NOT_STARTED, /* `e` tells why */
    SILT_PROCESS_NO_SHELL,    /* its session's shell had ended before; row.exit_code tells how. It has no record */
    SILT_PROCESS_ENDED,
};

/* Told once, of the next event; embedded in what waits, which may leave before. */
struct silt_process_watch {
    struct silt_link link;
    void (*on_event)(struct silt_process_watch *w, struct silt_process *p, enum silt_process_event what,
                     const struct silt_error *e);
};
void silt_process_watch(struct silt_process *p, struct silt_process_watch *w);
void silt_process_unwatch(struct silt_process_watch *w); /* fine when it is watching nothing, but was initialized */

struct silt_stdin { /* borrowed: must leave (p->in = NULL) before it goes */
    /* What was written last is in the pipe, perhaps by somebody before us; `closed`: nobody reads it any more. */
    void (*on_taken)(struct silt_stdin *in, bool closed);
};
/* One frame at most, and only when nothing is owed. */
void silt_process_write(struct silt_process *p, silt_slice bytes, bool close);

struct silt_process_request {
    struct silt_exec_request exec; /* mode BACKGROUND or PLAIN; number and SILT_START_LOG are set here */
    silt_slice id;      /* empty: one is made */
    silt_slice session; /* its name; empty: none */
    bool auto_cleanup;  /* the record goes a minute after its end */
};

/* 1..128 of [A-Za-z0-9._:@-], and none of the words that are routes. */
bool silt_process_id_is_good(silt_slice id);
struct silt_process *silt_process_find(struct silt_sandbox *s, silt_slice id); /* no terminal */
static inline bool silt_process_is_over(const struct silt_process *p)
{
    return p->row.status > SILT_PROCESS_RUNNING;
}
/* A shell on a terminal (sandbox/terminal.h): its id is one that nobody can choose, no list shows it, and its record goes with its end. */
static inline bool silt_process_is_terminal(const struct silt_process *p)
{
    return p->row.id[0] == '/';
}
/* `w` is told when it began, or could not. SILT_CONFLICT: one of that id still runs. SILT_LIMIT: too many run.
 * Nothing of `q` is borrowed afterwards. */
int silt_process_start(struct silt_sandbox *s, struct silt_session *session, const struct silt_process_request *q,
                       struct silt_process_watch *w, struct silt_process **ret, struct silt_error *e);
/* To all of its tree. With a grace, SIGKILL follows; then, and with SIGKILL, it ends when nothing of it is left. */
void silt_process_kill(struct silt_process *p, int signal, uint32_t grace_ms);
/* While held it is there, and its log stays open: also when its record goes, and between two follows. */
void silt_process_hold(struct silt_process *p);
void silt_process_release(struct silt_process *p);
/* One that is over: its record and its log go. */
void silt_process_remove(struct silt_process *p);

/* The rest is for this room. */
/* Its agent tells that it runs; false: none of ours. */
bool silt_process_adopt(struct silt_sandbox *s, uint64_t number, const struct silt_agent_exec_info *info);
/* What should run and of which nobody has told: its log may know how it ended. */
void silt_process_settle_all(struct silt_sandbox *s);
void silt_process_session_ended(struct silt_sandbox *s, uint64_t session);
void silt_process_open_log(struct silt_process *p); /* follows hear of it by silt_follow_log_is_here */
void silt_process_on_end(struct silt_process *p, const struct silt_agent_end *end, int64_t ended_ms);
void silt_process_on_lost(struct silt_process *p, const char *cause);
void silt_process_unuse(struct silt_process *p); /* it may have been its last user */
