/* SPDX-License-Identifier: Apache-2.0 */
/* shell: the words in which we talk to bash. Nothing of ours may be seen by what the user runs: no
 * variable, function, trap, job or descriptor. `\command` keeps the user's functions and aliases
 * out of the way (and, in POSIX mode, keeps a syntax error from ending the shell). */
#pragma once

#include "agent/folder.h"
#include "agent/script.h"
#include "agent/start.h"

#define SILT_SHELL_PATH "/bin/bash"
#define SILT_WORKSPACE "/workspace"

/* Makes $PWD the directory of the shell again; OLDPWD stays what it is, because the assignment
 * lasts as long as the eval. */
#define SILT_SHELL_GO_TO_PWD "OLDPWD= \\command eval '\\command cd -- \"${PWD-.}\"' || :"

char *const *silt_shell_argv(void);
/* A directory as a word for cd that means what it says: neither CDPATH nor `-` nor `~`. */
void silt_shell_add_dir(struct silt_script *s, silt_slice dir);

/* Lets the script choose its quotes for what it is going to quote. */
void silt_shell_expect(struct silt_script *s, const struct silt_start *start);

/* Names in the folder, per session slot. */
enum silt_shell_file {
    SILT_SHELL_IN = 'i',   /* and the next letter: for every other turn */
    SILT_SHELL_GATE = 'g', /* likewise */
    SILT_SHELL_OUT = 'o',
    SILT_SHELL_ERR = 'e',
    SILT_SHELL_STATUS = 's',
    SILT_SHELL_STATE = 'd',
};
void silt_shell_name(unsigned slot, enum silt_shell_file file, char out[SILT_FOLDER_NAME_SIZE]);

/* A shell that waits for us is about to open a gate, a FIFO that nobody writes to yet, and behind
 * it its input, a regular file: what it finds there it reads in one piece (from a pipe a shell
 * reads byte by byte). The lines end with the way to the next gate; a shell that does not take it
 * (`set -n`, `set -r`, a function called `command`) comes to the end of its input and so to its
 * own. There are two gates and two files, in turn, because a shell that has answered may not have
 * reached the next gate when its lines are written. */
struct silt_shell {
    unsigned slot;
    unsigned turn; /* 0 or 1: the gate after these lines */
    uint32_t mark; /* comes back with the status */
};
/* What comes back through the FIFO `s`. */
struct silt_answer {
    bool no_dir; /* the directory could not be entered; the answer proper follows */
    bool alone; /* nothing stood before it */
    int code;
    silt_slice cwd; /* of the text */
};
enum { SILT_MARK_SIZE = 16 };
/* Finds the answer with that mark; the guest can write to the FIFO as well, so what stands before
 * it is skipped. The number of bytes up to its end, or 0. When the text is full, with nothing but
 * an answer whose directory is longer than any that can be used, that is an answer without one. */
size_t silt_shell_answer(silt_slice text, uint32_t mark, bool full, struct silt_answer *ret);
/* How much of a full text without an answer can go: more than nothing. */
size_t silt_shell_junk(silt_slice text, uint32_t mark);

/* Lines for a shell. */
void silt_shell_begin(struct silt_script *s,
                      const struct silt_shell *sh); /* its first: to a gate */
void silt_shell_foreground(struct silt_script *s, const struct silt_shell *sh,
                           const struct silt_start *start);
/* Without traps. When the shell has some they stand before its answer: a trap may change the state of
 * a shell that waits. */
void silt_shell_save(struct silt_script *s, const struct silt_shell *sh);
void silt_shell_reload(struct silt_script *s,
                       const struct silt_shell *sh); /* what foreground saved */
