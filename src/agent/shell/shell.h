/* SPDX-License-Identifier: Apache-2.0 */
/* shell: the commands we send to bash, and its answers. The user's programs must not see anything
 * of ours: no variable, function, trap, job or descriptor. `\command` bypasses the user's functions
 * and aliases (and, in POSIX mode, keeps a syntax error from ending the shell). */
#pragma once

#include "agent/shell/dev_silt.h"
#include "agent/spawn/script.h"
#include "agent/spawn/start_frame.h"

#define SILT_SHELL_PATH "/bin/bash"
#define SILT_WORKSPACE "/workspace"

/* Sets the shell's directory to $PWD again. OLDPWD keeps its value, because the assignment lasts
 * only as long as the eval. */
#define SILT_SHELL_GO_TO_PWD "OLDPWD= \\command eval '\\command cd -- \"${PWD-.}\"' || :"

char *const *silt_shell_argv(void);
/* Quotes a directory for cd so that CDPATH, `-` and `~` have no effect. */
void silt_shell_add_dir(struct silt_script *s, silt_slice dir);

/* Lets the script choose its quotes from the text it will contain. */
void silt_shell_expect(struct silt_script *s, const struct silt_start_frame *start);

/* File names in /dev/silt, per session slot. */
enum silt_shell_file {
    SILT_SHELL_IN = 'i',   /* the next letter is used for every other turn */
    SILT_SHELL_GATE = 'g', /* likewise */
    SILT_SHELL_OUT = 'o',
    SILT_SHELL_ERR = 'e',
    SILT_SHELL_STATUS = 's',
    SILT_SHELL_STATE = 'd',
    SILT_SHELL_EXPORTED = 'x',
};
void silt_shell_name(unsigned slot, enum silt_shell_file file, char out[SILT_DEV_SILT_NAME_SIZE]);

/* A waiting shell opens its gate, a FIFO without a writer so far, and then reads its input, a
 * regular file, in one piece (from a pipe a shell reads byte by byte). The lines end with the
 * commands that open the next gate; a shell that skips them (`set -n`, `set -r`, a function called
 * `command`) reaches the end of its input and exits. There are two gates and two files, used in
 * turn, because a shell that has answered may not have reached the next gate when its next lines
 * are written. */
struct silt_shell {
    unsigned slot;
    unsigned turn; /* 0 or 1: the gate after these lines */
    uint32_t mark; /* returned with the status */
};
/* An answer received through the FIFO `s`. */
struct silt_answer {
    bool no_dir; /* the directory could not be entered; the real answer follows */
    bool alone;  /* there were no bytes before it */
    int code;
    silt_slice cwd; /* points into the text */
};
enum { SILT_MARK_SIZE = 16 };
/* Finds the answer with that mark. The guest can also write to the FIFO, so bytes before the answer
 * are skipped. Returns the number of bytes up to the answer's end, or 0. If the text is full and
 * contains only an answer with a directory longer than any valid path, that is an answer without a
 * directory. */
size_t silt_shell_answer(silt_slice text, uint32_t mark, bool full, struct silt_answer *ret);
/* How much of a full text without an answer can be dropped: at least one byte. */
size_t silt_shell_junk(silt_slice text, uint32_t mark);

/* Lines for a shell: */
void silt_shell_begin(struct silt_script *s,
                      const struct silt_shell *sh); /* the first ones, which lead it to a gate */
void silt_shell_foreground(struct silt_script *s, const struct silt_shell *sh,
                           const struct silt_start_frame *start);
/* Saves the state without traps. If the shell has traps they are listed before its answer: a trap
 * may change the state of a waiting shell. */
void silt_shell_save(struct silt_script *s, const struct silt_shell *sh);
void silt_shell_reload(struct silt_script *s,
                       const struct silt_shell *sh); /* loads what foreground saved */
