/* SPDX-License-Identifier: Apache-2.0 */
/* session: one bash that lives across commands. It reads lines through shell_input; a command's
 * output comes through two FIFOs and its status through a third, which the shell opens by name, so
 * that the user's programs never inherit our descriptors. session.c manages the shell, foreground.c
 * runs commands in it. */
#pragma once

#include "agent/exec/exec.h"
#include "agent/shell/shell_input.h"

/*   WAITING --handle--> IDLE --command--> RUNNING --status or death--> ENDING --dry--> IDLE
 *                         |                  | timeout or sweep           ^
 *                         |                  v                            | status or death
 *                         |               EXPIRED --all dead--> RELOADING-/
 *                         \--background command--> SAVING --state is written, or failure--> IDLE
 *   any --close--> CLOSING --all dead--> GONE
 *   WAITING --close--> GONE
 *   IDLE --its shell dies or cannot start--> GONE
 *
 * silt_session_enter is the only function that assigns the state. */
enum silt_session_state {
    SILT_SESSION_WAITING,
    SILT_SESSION_IDLE,
    SILT_SESSION_RUNNING,
    SILT_SESSION_ENDING,
    SILT_SESSION_SAVING,
    SILT_SESSION_EXPIRED,
    SILT_SESSION_RELOADING,
    SILT_SESSION_CLOSING,
    SILT_SESSION_GONE,
};

struct silt_fifo {
    int read;  /* owned; -1: not created yet */
    int write; /* owned; held while a command runs, so that the reader sees no end-of-file */
};

/* A sweep that waits until the shell is idle. */
struct silt_session_due {
    bool is_due;
    int signal;
    int64_t kill_ms; /* end of the grace period */
};

struct silt_session {
    struct silt_link link;
    struct silt_agent *agent; /* borrowed */
    uint64_t id;
    unsigned slot;
    enum silt_session_state state;
    uint32_t born;                     /* number of the last sweep before it */
    uint32_t swept;                    /* number of the last sweep that has started on it */
    struct silt_start_frame start;     /* until the shell runs */
    silt_slice note;                   /* owned: opaque bytes of siltd */
    char user[SILT_USER_TEXT_MAX + 1]; /* the shell's user; empty: root */
    struct silt_owner owner;           /* the same user, for files */

    struct silt_handle *handle;
    struct silt_handle_wait wait;
    struct silt_launch shell;
    bool opened;                    /* OPENED was sent */
    bool dead;                      /* the shell was reaped */
    struct silt_agent_end death;    /* exit status */
    struct silt_shell_inputs gates; /* the shell's input */
    struct silt_watch status;       /* fd owned */
    char text[PATH_MAX + 64];       /* received so far */
    size_t text_len;
    bool text_lost; /* part of it was dropped since the last lines were sent */
    uint32_t mark;  /* of the answer we wait for */
    struct silt_timer timer;
    struct silt_kill_tree purge;
    struct silt_session_due due;
    struct silt_grave grave;

    struct {                    /* exported.h */
        struct silt_timer look; /* runs while a report is outstanding */
        int file;               /* owned; -1: none */
        uint32_t mark;          /* of the command whose variables are awaited; 0: none yet */
        unsigned looks;
        uint64_t hash; /* of the last report; 0: none */
    } exported;

    /* the current command */
    struct silt_exec *exec; /* borrowed: runs here, or waits for our state */
    struct silt_exec *next; /* borrowed: waits until a sweep of this session is done */
    struct silt_fifo out[2];
    char *cwd;                 /* owned: the last one reported */
    int kept;                  /* owned: saved state, while it cannot have changed; -1: none */
    int64_t kept_ms;           /* when it was saved, wall clock */
    struct silt_id_set before; /* processes that existed before a command with a timeout */
    struct silt_limits limits; /* of the shell when the timeout expired */
};

/* Takes the start. */
void silt_session_open(struct silt_agent *a, uint64_t id, struct silt_start_frame *start);
struct silt_session *silt_session_find(struct silt_agent *a, uint64_t id);
void silt_session_close(struct silt_session *s);
/* x is new. It belongs to the session until it ends or run.c takes it over. */
void silt_session_exec(struct silt_session *s, struct silt_exec *x);
void silt_session_say_info(const struct silt_session *s);
/* Signals every process in its group except a waiting shell, and sends SIGKILL after the grace
 * period; a command in the shell is killed at once. While the shell saves or loads its state this
 * waits for it; commands sent after this call are not affected. */
void silt_session_sweep(struct silt_session *s, int signal, int64_t grace_ms);
bool silt_session_is_swept(const struct silt_session *s); /* true once that is done */
/* An exec of this session has ended. */
void silt_session_exec_left(struct silt_agent *a, uint64_t id);

/* For foreground.c and background.c: */
void silt_session_enter(struct silt_session *s, enum silt_session_state next);
/* For the next lines; from now on only their answer counts. */
struct silt_shell silt_session_next_shell(struct silt_session *s);
/* Continues a stopped shell, since no one else could. True if it was stopped. */
bool silt_session_wake(const struct silt_session *s);
int silt_session_send(struct silt_session *s, struct silt_script *lines, struct silt_error *e);
int silt_session_launch(struct silt_session *s, struct silt_spawn *spawn, struct silt_error *e);
void silt_session_purge(struct silt_session *s, const struct silt_id_set *keep);
/* Creates the state file before the shell writes it: the shell's user may not create files in our
 * directory. */
int silt_session_place_state(struct silt_session *s, struct silt_error *e);
void silt_session_remove_file(const struct silt_session *s, enum silt_shell_file file);
void silt_session_died(struct silt_session *s);
