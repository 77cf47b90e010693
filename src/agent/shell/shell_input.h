/* SPDX-License-Identifier: Apache-2.0 */
/* shell_input: passes lines to a waiting shell through a gate; shell.h describes what the shell
 * does. */
#pragma once

#include "agent/spawn/script.h"
#include "agent/shell/shell.h"

struct silt_shell_input {
    /* owned: the lines. One page of it is always allocated: the shell of a guest that fills our
     * directory can still be sent a command to empty it */
    int file;
    int open;   /* owned: the gate's write end; -1: the shell waits */
    bool large; /* the file is longer than one page */
};

struct silt_shell_inputs {
    struct silt_shell_input list[2];
    struct silt_owner owner; /* the shell's user */
    unsigned turn;           /* the gate at which the shell waits */
};

void silt_shell_inputs_init(struct silt_shell_inputs *g);
void silt_shell_inputs_fini(struct silt_shell_inputs *g);
/* Creates both gates and files for a new shell, whose first input is *ret_first. */
int silt_shell_inputs_make(struct silt_shell_inputs *g, int directory, unsigned slot,
                           struct silt_owner owner, int *ret_first, struct silt_error *e);
/* An empty script for the next lines, borrowed until they are sent. */
struct silt_script *silt_shell_inputs_script(struct silt_shell_inputs *g);
/* Writes the script and opens the gate for the shell. */
int silt_shell_inputs_send(struct silt_shell_inputs *g, struct silt_script *s, int directory,
                           unsigned slot, struct silt_error *e);
/* True while the shell has not answered the last lines. */
bool silt_shell_inputs_are_open(const struct silt_shell_inputs *g);
/* The shell has answered and moves to the next gate. The old gate is created anew: a process forked
 * in between may keep the old one open until its exec, and the shell would pass it again and run
 * the same lines twice. */
void silt_shell_inputs_shut(struct silt_shell_inputs *g, int directory, unsigned slot);
