/* SPDX-License-Identifier: Apache-2.0 */
/* gate: how lines come to a shell that waits for them; shell.h tells what it does there. */
#pragma once

#include "agent/script.h"
#include "agent/shell.h"

struct silt_gate {
    int file;   /* owned: the lines. A page of it is always there: a guest that fills our folder can
                   still be told to empty it */
    int open;   /* owned: what lets the shell pass; -1: it waits */
    bool large; /* the file is longer than that page */
};

struct silt_gates {
    struct silt_gate list[2];
    struct silt_owner owner; /* the shell's user */
    unsigned turn; /* the one before which the shell waits */
};

void silt_gates_init(struct silt_gates *g);
void silt_gates_fini(struct silt_gates *g);
/* New ones, for a new shell, whose first input is *ret_first. */
int silt_gates_make(struct silt_gates *g, int folder, unsigned slot, struct silt_owner owner,
                    int *ret_first, struct silt_error *e);
/* An empty script for the next lines, borrowed until they are sent. */
struct silt_script *silt_gates_script(struct silt_gates *g);
/* Lets the shell pass to what the script says. */
int silt_gates_send(struct silt_gates *g, struct silt_script *s, int folder, unsigned slot,
                    struct silt_error *e);
/* The shell has not answered what was sent last. */
bool silt_gates_are_open(const struct silt_gates *g);
/* The shell has answered: it is on its way to the next gate. Where it has passed is made anew: a process that was forked meanwhile may
 * have the old one open until it has become its program, and the shell would pass a second time, to the same lines. */
void silt_gates_shut(struct silt_gates *g, int folder, unsigned slot);
