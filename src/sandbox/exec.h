/* SPDX-License-Identifier: Apache-2.0 */
/* exec: one command running in a sandbox, from the request to its last byte of output. */
#pragma once

#include "sandbox/session.h"

struct silt_exec;

struct silt_exec_sink { /* borrowed: must outlive the exec, or leave it */
    void (*started)(struct silt_exec_sink *sink, int32_t pid); /* may be NULL */
    void (*output)(struct silt_exec_sink *sink, int stream, silt_slice bytes);
    /* With a log: there is something behind the position that was followed. May be NULL. */
    void (*logged)(struct silt_exec_sink *sink);
    /* n bytes of silt_exec_stdin are in the pipe; `closed`: nobody reads it any more. May be NULL. */
    void (*stdin_taken)(struct silt_exec_sink *sink, uint64_t n, bool closed);
    /* Exactly one of these two, once, last. */
    void (*ended)(struct silt_exec_sink *sink, const struct silt_agent_end *end);
    void (*failed)(struct silt_exec_sink *sink, const struct silt_error *e);
};

struct silt_exec_request {
    enum silt_agent_mode mode;
    silt_slice command, cwd;
    silt_slice env; /* NAME=value\0…: PLAIN: on top of the sandbox's, else on top of the session's */
    silt_slice user; /* empty: root */
    uint32_t timeout_ms;
    uint32_t flags;  /* SILT_START_… */
    uint32_t terminal; /* rows << 16 | columns; 0: none. It does not keep the sandbox awake */
    uint64_t number; /* 0: a new one */
    int secret;      /* with SILT_START_SECRET: number 3 of the command; duplicated */
    int out, err, lines; /* with SILT_START_PIPES: its standard output and error, and number 4 */
};

/* SILT_LIMIT when too much waits already. `session` is NULL for PLAIN. A foreground command holds the session until it ended, a background one
 * until it started. Nothing of `q` is borrowed afterwards. */
int silt_exec_start(struct silt_sandbox *s, struct silt_session *session, const struct silt_exec_request *q,
                    struct silt_exec_sink *sink, struct silt_exec **ret, struct silt_error *e);
/* With SILT_START_LOG: it begins when it has one. Borrowed until the sink hears that it started or failed. */
void silt_exec_give_log(struct silt_exec *x, int log);
/* One that a former siltd started and that its agent tells of. `lasting`: a context or a terminal. */
struct silt_exec *silt_exec_adopt(struct silt_sandbox *s, uint64_t number, bool lasting,
                                  struct silt_exec_sink *sink);
/* A context's process that silt-priv has made in the sandbox: its pidfd and handle (borrowed) go to the
 * agent. Its end has code -1. */
struct silt_exec *silt_exec_hand_over(struct silt_sandbox *s, uint64_t number, int32_t pid, const int *fds,
                                      int nfds, struct silt_exec_sink *sink);
/* The sink hears of the failure. True: it was not sent yet. False: it is too late for that. */
bool silt_exec_abort(struct silt_exec *x, const struct silt_error *e);
void silt_exec_kill(struct silt_exec *x, int signal, uint32_t grace_ms);
void silt_exec_interrupt(struct silt_exec *x); /* SIGINT to its process group */
void silt_exec_signal(struct silt_exec *x, int signal); /* to its first process only */
/* Its agent answers with a pong of its number when it has done what was asked before. */
void silt_exec_ping(struct silt_exec *x);
void silt_exec_follow(struct silt_exec *x, uint64_t position);
void silt_exec_stdin(struct silt_exec *x, silt_slice bytes, bool close); /* fits one frame */
void silt_exec_resize(struct silt_exec *x, uint32_t size); /* with a terminal */
/* A context or a terminal of that number. */
bool silt_exec_is_lasting(struct silt_sandbox *s, uint64_t number);
void silt_exec_detach(struct silt_exec *x); /* nobody reads; the sink stays */
void silt_exec_pass(struct silt_exec *x, struct silt_exec_sink *sink); /* it hears what comes from now on */
/* The sink has dealt with n bytes of output: as many more may come. */
void silt_exec_credit(struct silt_exec *x, size_t n);
/* The sink goes; the command runs on, unread. */
void silt_exec_leave(struct silt_exec *x);
void silt_exec_drop_all(struct silt_sandbox *s, const struct silt_error *e);
void silt_exec_forget_all(struct silt_sandbox *s); /* the daemon ends: nobody is told */
