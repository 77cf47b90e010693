/* SPDX-License-Identifier: Apache-2.0 */
/* session: one persistent shell in a sandbox, and the FIFO lock around it. A turn is what waits for the
 * lock: a command, a start, a delete. */
#pragma once

#include "sandbox/sandbox.h"

enum { SILT_SESSION_NAME_MAX = 256 };

/*   OPENING --opened--> OPEN --shell died--> DEAD (told to the next caller, then gone)  */
enum silt_session_state { SILT_SESSION_OPENING, SILT_SESSION_OPEN, SILT_SESSION_DEAD };

struct silt_session;

struct silt_turn {
    struct silt_link link;
    /* The session is open and ours until silt_session_leave. Or `e` tells why it cannot be had: with
     * the session when its shell had ended (exit_code tells how), else without. */
    void (*go)(struct silt_turn *t, struct silt_session *s, const struct silt_error *e);
};

struct silt_session {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;
    uint64_t number; /* silt-init's name for it */
    enum silt_session_state state;
    struct silt_link turns;
    struct silt_turn *holder;    /* whose turn it is; NULL: free */
    uint64_t foreign_exec;       /* a foreground exec of a former siltd still runs in it, or 0 */
    uint32_t timeout_ms;         /* default of its commands; 0: none */
    int32_t exit_code;           /* DEAD: the shell's status, -1 unknown */
    bool closing;                /* the holder waits for CLOSED */
    bool restarted;              /* a crash of the sandbox took its former shell along, and no answer has said so yet */
    bool advancing;              /* turns are being given: whoever leaves meanwhile need not do that too */
    int32_t pid;                 /* of the shell, as silt-init told; 0: not known, or it has another now */
    struct silt_grave grave;
    char *cwd;                   /* where the shell is; NULL: not known yet */
    char name[SILT_SESSION_NAME_MAX + 1];
};

struct silt_session_options {
    silt_slice env; /* on top of the sandbox's; NAME=value\0… */
    silt_slice cwd;
    uint32_t timeout_ms;
};

/* A variable of all sessions that begin while these processes run; data NULL: of none any more. More than SILT_EXPORTED_MAX bytes of them are
 * not kept. */
void silt_session_export(struct silt_sandbox *s, silt_slice name, silt_slice value);
struct silt_session *silt_session_find(struct silt_sandbox *s, silt_slice name);
bool silt_session_is_live(const struct silt_session *s); /* has a shell, or somebody who counts on it */
/* SILT_LIMIT when there are too many. One of that name that is not live is replaced. */
int silt_session_new(struct silt_sandbox *s, silt_slice name, const struct silt_session_options *o,
                     struct silt_session **ret, struct silt_error *e);
void silt_session_enter(struct silt_session *s, struct silt_turn *t);
void silt_session_leave(struct silt_session *s, struct silt_turn *t); /* also while still waiting */
/* By the holder: ends shell and children; t->go is called once more, with s == NULL, when it is gone. */
void silt_session_close(struct silt_session *s, struct silt_turn *t);
void silt_session_drop_all(struct silt_sandbox *s, const struct silt_error *e);
void silt_session_forget_all(struct silt_sandbox *s); /* the daemon ends: nobody is told */
void silt_session_forget_lost(struct silt_sandbox *s);
/* True once for a shell that is new because its sandbox crashed (how: the sandbox's row.death): directory, variables and functions of the
 * one before are gone. */
bool silt_session_take_restart(struct silt_session *s);
/* The shell ended with the command that ran in it (which tells its caller): whoever waits gets a new
 * shell, else the session is gone. The holder has left already. */
void silt_session_shell_ended(struct silt_session *s);
/* A foreground exec that a former siltd started has ended. */
void silt_session_foreign_ended(struct silt_sandbox *s, uint64_t exec, bool restarted);
