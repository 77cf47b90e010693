/* SPDX-License-Identifier: Apache-2.0 */
/* exec: one command running in a sandbox, from the request to its last byte of output. siltd keeps
 * the state, silt-init runs the command. The sandbox owns the exec; the caller owns the sink, which
 * learns of every failure. */
#pragma once

#include "sandbox/core/session.h"

struct silt_exec;

/* Delays a command until silt_exec_go. Owned by who delays it. */
struct silt_exec_guard {
    struct silt_exec *exec; /* NULL: it is gone */
};

struct silt_exec_sink { /* borrowed: must outlive the exec, or leave it */
    void (*started)(struct silt_exec_sink *sink, int32_t pid); /* may be NULL */
    void (*output)(struct silt_exec_sink *sink, int stream, silt_slice bytes);
    /* With a log: data exists past the position given to silt_exec_follow. May be NULL. */
    void (*logged)(struct silt_exec_sink *sink);
    void (*flushed)(struct silt_exec_sink *sink); /* reply to silt_exec_flush; may be NULL */
    /* n bytes of silt_exec_stdin are in the pipe; `closed`: the command no longer reads it. May be
     * NULL. */
    void (*stdin_taken)(struct silt_exec_sink *sink, uint64_t n, bool closed);
    /* Exactly one of these two is called, once, as the last callback. */
    void (*ended)(struct silt_exec_sink *sink, const struct silt_agent_end *end);
    void (*failed)(struct silt_exec_sink *sink, const struct silt_error *e);
};

enum silt_exec_kind { SILT_EXEC_COMMAND, SILT_EXEC_TERMINAL, SILT_EXEC_CONTEXT };

struct silt_exec_request {
    enum silt_agent_mode mode;
    silt_slice command, cwd;
    /* NAME=value\0…; added to the sandbox's environment (PLAIN) or to the session's. */
    silt_slice env;
    silt_slice user; /* empty: root */
    /* What the sandbox's history says that it runs; empty: it is not of a caller. */
    silt_slice record;
    uint32_t timeout_ms;
    uint32_t flags; /* SILT_START_… */
    /* rows << 16 | columns; 0: no terminal */
    uint32_t terminal;
    uint64_t number;     /* 0: assign one */
    uint64_t from;       /* with SILT_START_FORK: number of the exec to fork from */
    int secret;          /* with SILT_START_SECRET: the command's fd 3; duplicated */
    int out, err, lines; /* with SILT_START_PIPES: the command's stdout, stderr and fd 4 */
};

/* SILT_LIMIT if too many bytes are already waiting to start. `session` is NULL for PLAIN. A
 * foreground command holds the session until it has ended, a background one until it has started.
 * `q` is copied. */
int silt_exec_start(struct silt_sandbox *s, struct silt_session *session,
                    const struct silt_exec_request *q, struct silt_exec_sink *sink,
                    struct silt_exec **ret, struct silt_error *e);
/* With SILT_START_LOG: the command starts once it has its log. `log` is borrowed until the sink's
 * started or failed. */
void silt_exec_give_log(struct silt_exec *x, int log);
/* For a facet's before_command: the command does not start before silt_exec_go, which ends the
 * guard. */
void silt_exec_delay(struct silt_exec *x, struct silt_exec_guard *g);
void silt_exec_go(struct silt_exec_guard *g);
/* Adopts an exec of a previous siltd that the agent has reported. */
struct silt_exec *silt_exec_adopt(struct silt_sandbox *s, uint64_t number, enum silt_exec_kind kind,
                                  struct silt_exec_sink *sink);
/* Adopts a context's process that silt-priv has forked inside the sandbox; its pidfd and handle
 * (borrowed) are sent to the agent. Its exit code is always -1. */
struct silt_exec *silt_exec_hand_over(struct silt_sandbox *s, uint64_t number, int32_t pid,
                                      const int *fds, int nfds, struct silt_exec_sink *sink);
/* Calls the sink's failed and returns true if the command had not been sent yet; otherwise does
 * nothing and returns false. */
bool silt_exec_abort(struct silt_exec *x, const struct silt_error *e);
void silt_exec_kill(struct silt_exec *x, int signal, uint32_t grace_ms);
void silt_exec_interrupt(struct silt_exec *x);          /* SIGINT to its process group */
void silt_exec_signal(struct silt_exec *x, int signal); /* to its first process only */
/* The agent answers with a PONG carrying the exec's number once it has processed everything sent
 * before. */
void silt_exec_ping(struct silt_exec *x);
/* With a log: calls the sink's flushed when everything written so far is in the log, unless the
 * command ends first. */
void silt_exec_flush(struct silt_exec *x);
void silt_exec_follow(struct silt_exec *x, uint64_t position);
void silt_exec_stdin(struct silt_exec *x, silt_slice bytes, bool close); /* at most one frame */
void silt_exec_resize(struct silt_exec *x, uint32_t size);               /* with a terminal */
/* True if the exec of that number is a context or a terminal. */
bool silt_exec_is_lasting(struct silt_sandbox *s, uint64_t number);
void silt_exec_detach(struct silt_exec *x); /* discards output; the sink stays */
/* Replaces the sink for all further callbacks. */
void silt_exec_pass(struct silt_exec *x, struct silt_exec_sink *sink);
/* The sink has consumed n bytes of output: the agent may send as many more. */
void silt_exec_credit(struct silt_exec *x, size_t n);
/* Detaches the sink. The command runs on and its output is discarded. */
void silt_exec_leave(struct silt_exec *x);

extern const struct silt_facet silt_exec_facet;
