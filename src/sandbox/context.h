/* SPDX-License-Identifier: Apache-2.0 */
/* context: one interpreter process with its variables. Runs of code queue in it. It outlives restarts
 * of siltd; it ends with its sandbox's processes.
 *
 *   STARTING --ready--> IDLE <--> RUNNING        UNSURE: of a former siltd; it may be running --pong--> IDLE
 *   RUNNING, interrupted --done--> SETTLING --pong--> IDLE: the signal may still be on its way, and is not for
 *                                             the next run
 *   any --its process ends--> DEAD (kept, so that the next caller learns why), or STARTING again */
#pragma once

#include "sandbox/exec.h"
#include "sandbox/hearing.h"
#include "sandbox/kernel.h"
#include "sandbox/kernel_line.h"
#include "sandbox/language.h"
#include "sandbox/warm.h"

enum silt_context_state {
    SILT_CONTEXT_STARTING,
    SILT_CONTEXT_IDLE,
    SILT_CONTEXT_RUNNING,
    SILT_CONTEXT_UNSURE,
    SILT_CONTEXT_SETTLING,
    SILT_CONTEXT_DEAD,
};

enum {
    SILT_CONTEXTS_MAX = SILT_SUPER_CONTEXTS_MAX, /* of one sandbox, dead ones too */
    SILT_CONTEXT_CELLS_MAX = 64,                 /* in one context */
    SILT_CODE_BYTES_MAX = 16 << 20,
    SILT_INTERRUPT_GRACE_MS = 2000,
};

/* Where its process comes from. Nobody notices when one of the latter two is of no use: then it is started. */
enum silt_context_origin {
    SILT_CONTEXT_STARTED,
    SILT_CONTEXT_FORKED, /* or going to be, from a warm Python */
    SILT_CONTEXT_SPARE,  /* a Node, or a forked Python, that was waiting */
};

struct silt_context;

/* Waits for a context to be ready, or gone. Embedded; silt_context_unwait when that goes. */
struct silt_context_wait {
    struct silt_link link;
    void (*on_done)(struct silt_context_wait *w, struct silt_context *c, const struct silt_error *e);
};

struct silt_context {
    struct silt_link link; /* of the sandbox, in creation order */
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_context_row row;
    enum silt_context_state state;
    struct silt_kernel kernel;
    struct silt_hearer listener; /* for its long lines */
    struct silt_exec *exec; /* NULL: none runs */
    struct silt_exec_sink sink;
    struct silt_link cells; /* struct silt_cell; the first is under way while RUNNING */
    size_t cell_count;
    struct silt_link starters; /* wait until it is ready */
    struct silt_link enders;   /* wait until it is gone */
    struct silt_timer deadline; /* of its start, of the run, of an interrupt */
    struct silt_death death;    /* why it is dead */
    uint64_t ping;              /* UNSURE, SETTLING: what it was asked; 0: nothing yet */
    uint64_t lost_bytes;        /* UNSURE: what a run that nobody hears has printed */
    bool interrupted;           /* the run was, and has not ended yet */
    int64_t patience_ms;        /* then: until when it may take to end */
    bool restarting, removing;  /* what comes after the end of its process */
    bool known;                 /* it was ready once: somebody has its id */
    bool silent;                /* nobody can say lines any more */
    struct silt_warm warm;      /* what silt-priv is asked about its process */
    struct silt_agent_end end;  /* of its process; while its last words are heard, and silt-priv is asked how it ended */
    enum silt_context_origin origin;
    bool cold;                  /* it has to be started: a warm one was of no use */
    bool doomed;                /* it is killed as soon as it is known */
    bool lacks_interpreter;     /* its process said so before it ended */
    struct silt_grave grave;
};

struct silt_context_options {
    enum silt_language language;
    silt_slice cwd; /* empty: /workspace */
    silt_slice env; /* NAME=value\0… */
    uint32_t timeout_ms; /* of each run; 0: none */
    bool is_default;     /* the one that is used when none is named */
};

/* SILT_LIMIT when there are too many. `w` (may be NULL) hears when it is ready, or why it could not be
 * started: then it is gone. */
int silt_context_new(struct silt_sandbox *s, const struct silt_context_options *o,
                     struct silt_context_wait *w, struct silt_context **ret, struct silt_error *e);
struct silt_context *silt_context_find(struct silt_sandbox *s, silt_slice id);
/* The living one that is used when none is named; NULL: there is none yet. */
struct silt_context *silt_context_default(struct silt_sandbox *s, enum silt_language language);
/* At once when it is ready or dead. */
void silt_context_wait(struct silt_context *c, struct silt_context_wait *w);
void silt_context_unwait(struct silt_context_wait *w);
/* What runs in it is told; `w` (may be NULL) when nothing of it is left. */
void silt_context_remove(struct silt_context *c, struct silt_context_wait *w);
/* A new process in its place; `w` as with silt_context_new. */
void silt_context_restart(struct silt_context *c, struct silt_context_wait *w);
/* false: nothing runs in it. */
bool silt_context_interrupt(struct silt_context *c);

/* Its sandbox's processes end: all of them are gone. */
void silt_context_drop_all(struct silt_sandbox *s, const struct silt_error *e);
void silt_context_forget_all(struct silt_sandbox *s); /* the daemon ends: nobody is told */

/* A former siltd's: its row (taken), then its descriptors (taken), then its exec; those that lack any of
 * them when the agent has told all are gone. */
void silt_context_load(struct silt_sandbox *s, struct silt_context_row *row);
void silt_context_adopt(struct silt_sandbox *s, uint64_t number, const int fds[SILT_KERNEL_FDS]);
/* Its descriptors are those of a former version, and of no use. */
void silt_context_outlive(struct silt_sandbox *s, uint64_t number);
bool silt_context_adopt_exec(struct silt_sandbox *s, uint64_t number);
void silt_context_settle_all(struct silt_sandbox *s);

void silt_context_on_pong(struct silt_sandbox *s, uint64_t number); /* for channel.c */

/* For cell.c. */
/* An interrupted run has ended: the next one begins when no signal can hit it any more. */
void silt_context_settle(struct silt_context *c);
void silt_context_save(struct silt_context *c);
void silt_context_enter(struct silt_context *c, enum silt_context_state next);
void silt_context_kill(struct silt_context *c, const char *cause, const char *message);
