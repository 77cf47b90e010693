/* SPDX-License-Identifier: Apache-2.0 */
/* session: one persistent shell in a sandbox and the FIFO lock around it. A turn is one waiter for
 * the lock: a command, a process start or a delete. Runs in siltd; the sandbox owns its sessions,
 * callers own their turns. */
#pragma once

#include "sandbox/core/sandbox.h"

enum { SILT_SESSION_NAME_MAX = 256 };

/*   OPENING --opened--> OPEN --shell died--> DEAD (reported to the next caller, then gone)
 *      ^                 |
 *      |                 | the sandbox's processes end
 *      \---next use--- ASLEEP (session_state.h says what it keeps) */
enum silt_session_state {
    SILT_SESSION_OPENING,
    SILT_SESSION_OPEN,
    SILT_SESSION_DEAD,
    SILT_SESSION_ASLEEP,
};

struct silt_session;

struct silt_turn {
    struct silt_link link;
    /* Called when the session is open and locked for us until silt_session_leave. On failure `e` is
     * set, and `s` too if the shell had ended (see exit_code). */
    void (*go)(struct silt_turn *t, struct silt_session *s, const struct silt_error *e);
};

struct silt_session {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;
    uint64_t number; /* silt-init's number for it */
    enum silt_session_state state;
    struct silt_link turns;
    struct silt_turn *holder; /* has the lock; NULL: free */
    uint64_t foreign_exec;    /* foreground exec of a previous siltd still running in it, or 0 */
    uint32_t timeout_ms;      /* default for its commands; 0: none */
    int32_t exit_code;        /* DEAD: the shell's exit status, -1: unknown */
    bool closing;             /* the holder waits for CLOSED */
    /* A sandbox crash ended its previous shell and no response has said so yet. */
    bool restarted;
    bool advancing; /* turns are being granted: a leave inside must not recurse */
    int32_t pid;    /* of the shell, from silt-init; 0: unknown or replaced */
    struct silt_grave grave;
    char *cwd;       /* of the shell; NULL: not known yet */
    char *first_cwd; /* as asked for; NULL: the default */
    char *kept;      /* its variables that are not everybody's; NULL: none */
    size_t kept_len;
    bool unsaved; /* the store does not have it like this */
    char name[SILT_SESSION_NAME_MAX + 1];
};

struct silt_session_options {
    silt_slice env; /* added to the sandbox's; NAME=value\0… */
    silt_slice cwd;
    uint32_t timeout_ms;
};

/* Sets a variable for sessions that start from now on; data NULL: unsets it.
 * Anything past SILT_EXPORTED_MAX bytes is dropped. */
void silt_session_export(struct silt_sandbox *s, silt_slice name, silt_slice value);
struct silt_session *silt_session_find(struct silt_sandbox *s, silt_slice name);
/* Has a shell, or a user that relies on it. */
bool silt_session_is_live(const struct silt_session *s);
/* Puts options on top of what a session keeps that is asleep. */
void silt_session_amend(struct silt_session *s, const struct silt_session_options *o);
/* The directory of its shell has changed. */
void silt_session_moved(struct silt_session *s, silt_slice cwd);
/* Variables of the sandbox have changed: sessions that have the values before did not set them. */
void silt_session_env_changes(struct silt_sandbox *s, silt_slice before);
/* SILT_LIMIT if there are too many. Replaces one of that name that is not live. */
int silt_session_new(struct silt_sandbox *s, silt_slice name, const struct silt_session_options *o,
                     struct silt_session **ret, struct silt_error *e);
void silt_session_enter(struct silt_session *s, struct silt_turn *t);
void silt_session_leave(struct silt_session *s, struct silt_turn *t); /* also while waiting */
/* For the holder: ends the shell and its children, then calls t->go once more with s == NULL. */
void silt_session_close(struct silt_session *s, struct silt_turn *t);
/* True once for a shell that is new because its sandbox crashed (row.death of the sandbox says
 * how): the functions of the old shell and its variables that were not exported are lost. */
bool silt_session_take_restart(struct silt_session *s);
/* The shell ended together with the command in it, whose result says so. Waiters get a new shell;
 * without any, the session is gone. The holder has already left. */
void silt_session_shell_ended(struct silt_session *s);
/* A foreground exec of a previous siltd has ended. */
void silt_session_foreign_ended(struct silt_sandbox *s, uint64_t exec, bool restarted);

extern const struct silt_facet silt_session_facet;
