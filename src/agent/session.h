/* SPDX-License-Identifier: Apache-2.0 */
/* session: one bash that lives across commands. Its lines come through gates; a command's output
 * comes through two FIFOs and its status through a third, which the shell opens by name, so that no
 * descriptor of ours is ever inherited by what the user runs. session.c keeps the shell,
 * foreground.c runs commands in it. */
#pragma once

#include "agent/exec.h"
#include "agent/gate.h"

/*   WAITING -handle-> IDLE -command-> RUNNING -status or death-> ENDING -output is dry-> IDLE
 *                      | \                \--time is over--> EXPIRED -all dead-> RELOADING ->
 * ENDING |  \--background command--> SAVING -state is written-> IDLE
 *                      \---close, from every state--> CLOSING -> GONE            */
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
    int read;  /* owned; -1: to be made */
    int write; /* owned; held while a command runs, so that the reading end never looks ended */
};

struct silt_session {
    struct silt_link link;
    struct silt_agent *agent; /* borrowed */
    uint64_t id;
    unsigned slot;
    enum silt_session_state state;
    uint32_t born;  /* after this sweep */
    uint32_t swept; /* the last one that has begun with it */
    struct silt_start start; /* until the shell runs */
    silt_slice note;         /* owned: siltd's own bytes about it */
    char user[SILT_USER_TEXT_MAX + 1]; /* whose shell it is; empty: root's */
    struct silt_owner owner;           /* the same, for files */

    struct silt_handle *handle;
    struct silt_handle_wait wait;
    struct silt_launch shell;
    bool opened;                 /* siltd was told */
    bool dead;                   /* the shell was reaped */
    struct silt_agent_end death; /* how */
    struct silt_gates gates;     /* the shell's input */
    struct silt_watch status;    /* fd owned */
    char text[PATH_MAX + 64];    /* of it, so far */
    size_t text_len;
    bool text_lost; /* some of it, since the last lines were sent */
    uint32_t mark; /* of the answer that we wait for */
    struct silt_timer timer;
    struct silt_purge purge;
    struct silt_grave grave;

    /* of the command */
    struct silt_exec *exec; /* borrowed: it runs here, or waits for our state */
    struct silt_exec *next; /* borrowed: waits until a sweep is done with us */
    struct silt_fifo out[2];
    char *cwd;                 /* owned: the last one told */
    int kept;                  /* owned: its state, while it cannot have another; -1: none */
    int64_t kept_ms;           /* since when, on the wall clock */
    struct silt_id_set before; /* who was here before a command that has a deadline */
    struct silt_limits limits; /* of the shell when the time was over */
};

/* Takes the start. */
void silt_session_open(struct silt_agent *a, uint64_t id, struct silt_start *start);
struct silt_session *silt_session_find(struct silt_agent *a, uint64_t id);
void silt_session_close(struct silt_session *s);
/* x is new; from here on it is the session's until it ends, or run.c's. */
void silt_session_exec(struct silt_session *s, struct silt_exec *x);
void silt_session_say_info(const struct silt_session *s);
/* Everybody in its group but a shell that waits gets the signal, and after the grace SIGKILL; a command in the shell is
 * ended at once. False: it is in the middle of something, ask again soon. */
bool silt_session_sweep(struct silt_session *s, int signal, int64_t grace_ms);
bool silt_session_is_swept(const struct silt_session *s); /* and that is done */
/* An exec of this session has ended. */
void silt_session_exec_left(struct silt_agent *a, uint64_t id);

/* For foreground.c. */
/* For the lines that come next, whose answer is the one that counts from here on. */
struct silt_shell silt_session_next_shell(struct silt_session *s);
/* A shell that was stopped goes on: nobody else could make it. True when it was. */
bool silt_session_wake(const struct silt_session *s);
int silt_session_send(struct silt_session *s, struct silt_script *lines, struct silt_error *e);
int silt_session_launch(struct silt_session *s, struct silt_spawn *spawn, struct silt_error *e);
void silt_session_purge(struct silt_session *s, const struct silt_id_set *keep);
/* Before the shell writes its state: it may not make files where we meet. */
int silt_session_place_state(struct silt_session *s, struct silt_error *e);
void silt_session_remove_file(const struct silt_session *s, enum silt_shell_file file);
void silt_session_died(struct silt_session *s);
