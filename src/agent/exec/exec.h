/* SPDX-License-Identifier: Apache-2.0 */
/* exec: one command, from siltd's request to the last byte of output; the part common to all modes.
 * run.c runs commands with their own process, session.c commands inside a session's shell. */
#pragma once

#include "agent/exec/agent.h"
#include "agent/output/input.h"
#include "agent/output/output.h"
#include "agent/spawn/kill_tree.h"
#include "agent/spawn/start_frame.h"
#include "agent/exec/flush.h"

struct silt_session;

/*   WAITING --handle--> STARTING --exec--> RUNNING --exit--> ENDING --no more output--> DONE
 *
 * Only commands with their own process wait and start; a foreground command begins in RUNNING. */
enum silt_exec_state {
    SILT_EXEC_WAITING, /* for a handle, or for the session's state */
    SILT_EXEC_STARTING,
    SILT_EXEC_RUNNING,
    SILT_EXEC_ENDING,
    SILT_EXEC_DONE,
};

struct silt_exec {
    struct silt_link link;
    struct silt_agent *agent; /* borrowed */
    uint64_t id;
    enum silt_exec_state state;
    uint32_t born; /* number of the last sweep before it */
    struct silt_start_frame start;
    pid_t pid;
    struct silt_output outlet;
    struct silt_log_writer log; /* of the output; fd -1: siltd receives the output itself */
    struct silt_flush flush;    /* of the log */
    struct silt_timer deadline;
    struct silt_limit_events_mark mark;
    struct silt_agent_end end;
    struct silt_grave grave;

    /* for a command with its own process */
    struct silt_handle *handle; /* ours until the end, or NULL */
    struct silt_handle_wait wait;
    struct silt_launch launch;
    struct silt_kill_tree purge;
    int out, err; /* our ends, owned */
    struct silt_input input;
    int state_file;                  /* background: the session's saved state, owned */
    pid_t like;                      /* background: the session's shell */
    char as[SILT_USER_TEXT_MAX + 1]; /* background: the session's user; empty: root */
    bool ordinary;                   /* background: the state is small and complete */
    int64_t state_age_s; /* background: age of the state; added to the shell's SECONDS */
    struct silt_limits limits;
    struct silt_watch leader;          /* adopted: its pidfd, owned; -1: none, or it has ended */
    struct silt_handle adopted_handle; /* adopted: its own handle, owned */
    int control;   /* SILT_START_WARM: socket for requests to it, owned; -1: none */
    uint64_t from; /* SILT_START_FORK: the exec that forks it; 0: none */
    /* SILT_START_FORK: pipe for its pid, owned; -1: none, or the pid has arrived */
    struct silt_watch answer;
    int gate; /* SILT_START_FORK: pipe that lets it continue, owned */
    void (*on_forked)(struct silt_exec *x, const struct silt_error *e); /* e is NULL: x->pid runs */
    bool exited;
    bool doomed; /* killed while it was waiting */
};

/* Takes the start. Stays in the agent's list until silt_exec_end or silt_exec_fail. */
struct silt_exec *silt_exec_new(struct silt_agent *a, uint64_t id, struct silt_start_frame *start);
struct silt_exec *silt_exec_find(struct silt_agent *a, uint64_t id);

/* True for contexts and terminals: they outlive single commands, as a session does. */
static inline bool silt_exec_is_lasting(const struct silt_exec *x)
{
    return (x->start.head.flags & SILT_START_PIPES) != 0 || x->start.head.terminal != 0;
}

void silt_exec_say_started(struct silt_exec *x, pid_t pid);
/* Sends ENDED with x->end and buries x. */
void silt_exec_end(struct silt_exec *x, silt_slice cwd);
void silt_exec_fail(struct silt_exec *x, const struct silt_error *e);

void silt_exec_set_status(struct silt_agent_end *end, int status); /* `status` as from waitpid */

/* In run.c: starts PLAIN commands at once, BACKGROUND ones after their session has saved its state
 * (takes state_file). */
void silt_run_start(struct silt_exec *x);
void silt_run_with_state(struct silt_exec *x, int state_file, pid_t like);
/* See SILT_AGENT_ADOPT. Takes the descriptors. */
void silt_run_adopt(struct silt_exec *x, pid_t pid, const int *fds, size_t count);
/* See SILT_AGENT_KILL. x does not end before this returns. */
void silt_run_kill(struct silt_exec *x, int signal, uint32_t grace_ms);
void silt_run_interrupt(struct silt_exec *x, int signal); /* to its process group */
void silt_run_signal(struct silt_exec *x, int signal);    /* to its first process only */
