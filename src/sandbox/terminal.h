/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: a shell on a pseudo-terminal, one for each session: a process that no list shows. Its log is what whoever comes later sees again
 * (sandbox/follow); what its viewers type goes into one queue. It runs on without viewers, and only viewers keep the sandbox awake. */
#pragma once

#include "sandbox/process.h"

#include <signal.h>

enum {
    SILT_TERMINAL_REPLAY = 256 << 10,     /* bytes that a new viewer gets of what was */
    SILT_TERMINAL_QUEUE = 64 << 10,       /* typed and not taken: beyond it viewers are to wait */
    SILT_TERMINAL_SHELL_MAX = 1024,
    SILT_TERMINAL_NO_SHELL = SIGSYS, /* ends what could not become the shell: no exit code says that and nothing else */
};

struct silt_keyboard { /* of one viewer: embedded, must leave before it goes */
    struct silt_terminal *terminal; /* borrowed; NULL: it has left */
    struct silt_link link;
    void (*on_room)(struct silt_keyboard *k); /* what is typed finds room again */
};

struct silt_terminal_options {
    uint16_t columns, rows;
    silt_slice shell; /* a program's name or path */
};

static inline uint32_t silt_terminal_size(uint16_t columns, uint16_t rows)
{
    return (uint32_t)rows << 16 | columns;
}

/* That of the session, running or about to; NULL: none. */
struct silt_process *silt_terminal_find(struct silt_sandbox *s, silt_slice session);
/* As silt_process_start, which tells `w`. */
int silt_terminal_start(struct silt_sandbox *s, struct silt_session *session, const struct silt_terminal_options *o,
                        struct silt_process_watch *w, struct silt_process **ret, struct silt_error *e);

/* Keeps the sandbox awake until it leaves. */
void silt_keyboard_join(struct silt_keyboard *k, struct silt_process *p);
void silt_keyboard_leave(struct silt_keyboard *k); /* fine when it has left; what was typed still goes */
/* False: wait for on_room before more is typed. It was taken all the same. */
bool silt_keyboard_type(struct silt_keyboard *k, silt_slice bytes);
void silt_keyboard_resize(struct silt_keyboard *k, uint16_t columns, uint16_t rows);
