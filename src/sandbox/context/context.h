/* SPDX-License-Identifier: Apache-2.0 */
/* context: one interpreter process and its variables; code executions queue in it. Owned by the
 * sandbox in siltd. It survives a restart of siltd and ends with the sandbox's processes.
 *
 *   STARTING --ready--> IDLE <--> RUNNING
 *   RUNNING, interrupted --done--> SETTLING --pong--> IDLE
 *   UNSURE --pong--> IDLE
 *   any --process ends--> DEAD, or STARTING again
 *
 * SETTLING: the signal may still be in flight and must not hit the next run. UNSURE: from a
 * previous siltd, perhaps running. DEAD: kept so that the next caller learns why. */
#pragma once

#include "sandbox/core/exec.h"
#include "sandbox/context/parse_thread.h"
#include "sandbox/context/kernel_conn.h"
#include "sandbox/context/kernel_protocol.h"
#include "sandbox/context/language.h"
#include "sandbox/context/zygote_fork.h"

enum silt_context_state {
    SILT_CONTEXT_STARTING,
    SILT_CONTEXT_IDLE,
    SILT_CONTEXT_RUNNING,
    SILT_CONTEXT_UNSURE,
    SILT_CONTEXT_SETTLING,
    SILT_CONTEXT_DEAD,
};

enum {
    SILT_CONTEXTS_MAX = SILT_SUPER_CONTEXTS_MAX, /* per sandbox, including dead ones */
    SILT_CONTEXT_CELLS_MAX = 64,                 /* per context */
    SILT_CODE_BYTES_MAX = 16 << 20,
    SILT_INTERRUPT_GRACE_MS = 2000,
};

/* Where its process comes from. If one of the last three turns out to be unusable, a new process is
 * started instead and clients notice nothing. */
enum silt_context_origin {
    SILT_CONTEXT_STARTED,
    SILT_CONTEXT_FORKED, /* forked, or to be forked, from a zygote */
    SILT_CONTEXT_SPARE,  /* a prestarted Node or forked Python */
    SILT_CONTEXT_INNER,  /* forked from the sandbox's own prestarted Python */
};

struct silt_context;

/* Waits until a context is ready or gone. Embedded; call silt_context_unwait before it is freed. */
struct silt_context_wait {
    struct silt_link link;
    void (*on_done)(struct silt_context_wait *w, struct silt_context *c,
                    const struct silt_error *e);
};

struct silt_context {
    struct silt_link link;        /* in the sandbox, in creation order */
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_context_row row;
    enum silt_context_state state;
    struct silt_kernel kernel;
    struct silt_parse_listener listener; /* for its long lines */
    struct silt_exec *exec;              /* NULL: no process */
    struct silt_exec_sink sink;
    struct silt_link cells; /* struct silt_code_run; RUNNING: the first one is executing */
    size_t cell_count;
    struct silt_link starters;    /* waiting until it is ready */
    struct silt_link enders;      /* waiting until it is gone */
    struct silt_timer deadline;   /* of the start, the run or an interrupt */
    struct silt_death death;      /* why it is DEAD */
    uint64_t ping;                /* UNSURE, SETTLING: number of the PING; 0: none sent yet */
    uint64_t lost_bytes;          /* UNSURE: discarded output of an unknown run */
    bool interrupted;             /* the run was interrupted and has not ended yet */
    int64_t patience_ms;          /* if interrupted: deadline for it to end */
    bool restarting, removing;    /* what follows the end of its process */
    bool known;                   /* it was ready once, so a client has its id */
    bool silent;                  /* no process can send lines any more */
    struct silt_zygote_fork warm; /* request to silt-priv about its process */
    /* Of its process; kept while the last output is read and silt-priv reports the exit status. */
    struct silt_agent_end end;
    enum silt_context_origin origin;
    uint64_t from; /* SILT_CONTEXT_INNER: the exec to fork from */
    bool cold;     /* needs a new process: a warm one was unusable */
    bool doomed;   /* kill it as soon as it has a process */
    /* Why it cannot start, for those who wait for it; SILT_OK: its end says that. */
    enum silt_code fault;
    struct silt_grave grave;
};

struct silt_context_options {
    enum silt_language language;
    silt_slice cwd;      /* empty: /workspace */
    silt_slice env;      /* NAME=value\0… */
    uint32_t timeout_ms; /* of each run; 0: none */
    bool is_default;     /* used when a request names no context */
};

/* SILT_LIMIT if there are too many; SILT_NO_SPACE, here or through `w`, if the disk is full. `w`
 * (may be NULL) is called when it is ready, or failed to start and is gone. */
int silt_context_new(struct silt_sandbox *s, const struct silt_context_options *o,
                     struct silt_context_wait *w, struct silt_context **ret, struct silt_error *e);
struct silt_context *silt_context_find(struct silt_sandbox *s, silt_slice id);
/* The live context used when a request names none; NULL: none yet. */
struct silt_context *silt_context_default(struct silt_sandbox *s, enum silt_language language);
/* Calls `w` at once if the context is ready or dead. */
void silt_context_wait(struct silt_context *c, struct silt_context_wait *w);
void silt_context_unwait(struct silt_context_wait *w);
/* Fails what runs in it; calls `w` (may be NULL) once nothing of it is left. */
void silt_context_remove(struct silt_context *c, struct silt_context_wait *w);
/* Replaces its process; `w` as in silt_context_new. */
void silt_context_restart(struct silt_context *c, struct silt_context_wait *w);
/* False: nothing runs in it. */
bool silt_context_interrupt(struct silt_context *c);

extern const struct silt_facet silt_context_facet;
/* Recovery from a previous siltd: first its row from the store, then its descriptors (taken), then
 * its exec. A context that still lacks one of them when the agent has reported everything is
 * gone. */
void silt_contexts_adopt(struct silt_registry *r, uint32_t slot, uint64_t number,
                         const int fds[SILT_KERNEL_FDS]);
/* Its descriptors come from an incompatible version and cannot be used. */
void silt_contexts_outlive(struct silt_registry *r, uint32_t slot, uint64_t number);

/* For run_queue.c. */
/* An interrupted run has ended: starts the next one once no signal can hit it. */
void silt_context_settle(struct silt_context *c);
void silt_context_save(struct silt_context *c);
void silt_context_enter(struct silt_context *c, enum silt_context_state next);
void silt_context_kill(struct silt_context *c, const char *cause, const char *message);
