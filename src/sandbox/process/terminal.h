/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: a shell on a pseudo-terminal, at most one per session; a process that lists omit. Its
 * log is replayed to later viewers (log_follower.h); input of all viewers goes into one queue. It
 * runs on without viewers, but only viewers keep the sandbox awake. */
#pragma once

#include "sandbox/process/process.h"

#include <signal.h>

enum {
    SILT_TERMINAL_REPLAY = 256 << 10, /* output replayed to a new viewer */
    SILT_TERMINAL_QUEUE = 64 << 10,   /* input not read yet; past this, viewers should wait */
    SILT_TERMINAL_SHELL_MAX = 1024,
    /* Marks a child that could not exec the shell: no exit code would be unambiguous. */
    SILT_TERMINAL_NO_SHELL = SIGSYS,
};

struct silt_keyboard {              /* of one viewer: embedded, must leave before it is freed */
    struct silt_terminal *terminal; /* borrowed; NULL: has left */
    struct silt_link link;
    void (*on_room)(struct silt_keyboard *k); /* the input queue has room again */
};

struct silt_terminal_options {
    uint16_t columns, rows;
    silt_slice shell; /* program name or path */
};

static inline uint32_t silt_terminal_size(uint16_t columns, uint16_t rows)
{
    return (uint32_t)rows << 16 | columns;
}

/* The session's terminal, running or starting; NULL: none. */
struct silt_process *silt_terminal_find(struct silt_sandbox *s, silt_slice session);
/* As silt_process_start, which calls `w`. */
int silt_terminal_start(struct silt_sandbox *s, struct silt_session *session,
                        const struct silt_terminal_options *o, struct silt_process_watch *w,
                        struct silt_process **ret, struct silt_error *e);

/* Keeps the sandbox awake until the keyboard leaves. */
void silt_keyboard_join(struct silt_keyboard *k, struct silt_process *p);
/* No-op if it has left. Input already queued is still delivered. */
void silt_keyboard_leave(struct silt_keyboard *k);
/* False: the bytes were accepted, but wait for on_room before the next. */
bool silt_keyboard_type(struct silt_keyboard *k, silt_slice bytes);
void silt_keyboard_resize(struct silt_keyboard *k, uint16_t columns, uint16_t rows);
