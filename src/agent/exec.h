/* SPDX-License-Identifier: Apache-2.0 */
/* exec: one command, from siltd's request to its last byte. What all modes have in common; a
 * process of its own is run.c's, a command inside a session's shell is session.c's. */
#pragma once

#include "agent/agent.h"
#include "agent/input.h"
#include "agent/outlet.h"
#include "agent/purge.h"
#include "agent/start.h"

struct silt_session;

/*   WAITING --handle--> STARTING --exec--> RUNNING --exit--> ENDING --no more output--> DONE
 * WAITING and STARTING are those of a process of its own; a foreground command begins RUNNING. */
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
    uint32_t born; /* after this sweep */
    struct silt_start start;
    pid_t pid;
    struct silt_outlet outlet;
    struct silt_log_writer log; /* of the outlet; fd -1: siltd gets the output itself */
    struct silt_timer deadline;
    struct silt_meter_mark mark;
    struct silt_agent_end end;
    struct silt_grave grave;

    /* of a process of its own */
    struct silt_handle *handle; /* ours until the end, or NULL */
    struct silt_handle_wait wait;
    struct silt_launch launch;
    struct silt_purge purge;
    int out, err; /* our ends, owned */
    struct silt_input input;
    int state_file; /* background: the session's state, owned */
    pid_t like;     /* background: the session's shell */
    char as[SILT_USER_TEXT_MAX + 1]; /* background: whose the session is; empty: root's */
    bool ordinary;  /* background: the state is small, and all that there is to its shell */
    int64_t state_age_s; /* background: of the state, by which the shell's own SECONDS went on */
    struct silt_limits limits;
    struct silt_watch leader; /* adopted: its pidfd, owned; -1: none, or it has ended */
    struct silt_handle adopted_handle; /* its own, owned */
    bool exited;
    bool doomed; /* killed while it was waiting */
};

/* Takes the start. It is in the agent's list until silt_exec_end or silt_exec_fail. */
struct silt_exec *silt_exec_new(struct silt_agent *a, uint64_t id, struct silt_start *start);
struct silt_exec *silt_exec_find(struct silt_agent *a, uint64_t id);

/* A context or a terminal: it is there for commands, as a session is. */
static inline bool silt_exec_is_lasting(const struct silt_exec *x)
{
    return (x->start.head.flags & SILT_START_PIPES) != 0 || x->start.head.terminal != 0;
}

void silt_exec_say_started(struct silt_exec *x, pid_t pid);
/* Says ENDED with x->end and buries. */
void silt_exec_end(struct silt_exec *x, silt_slice cwd);
void silt_exec_fail(struct silt_exec *x, const struct silt_error *e);

void silt_exec_set_status(struct silt_agent_end *end, int status); /* as of waitpid */

/* run.c: PLAIN at once, BACKGROUND once its session has put down its state (takes state_file). */
void silt_run_start(struct silt_exec *x);
void silt_run_with_state(struct silt_exec *x, int state_file, pid_t like);
/* As SILT_AGENT_ADOPT says. Takes the descriptors. */
void silt_run_adopt(struct silt_exec *x, pid_t pid, const int *fds, size_t count);
/* As SILT_AGENT_KILL says. x does not end before this returns. */
void silt_run_kill(struct silt_exec *x, int signal, uint32_t grace_ms);
void silt_run_interrupt(struct silt_exec *x, int signal); /* to its process group */
void silt_run_signal(struct silt_exec *x, int signal);    /* to it alone */
