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

/* Names in the folder, per session slot. */
enum silt_shell_file {
    SILT_SHELL_IN = 'i',
    SILT_SHELL_OUT = 'o',
    SILT_SHELL_ERR = 'e',
    SILT_SHELL_STATUS = 's',
    SILT_SHELL_COMMAND = 'c',
    SILT_SHELL_STATE = 'd',
};
void silt_shell_name(unsigned slot, enum silt_shell_file file, char out[SILT_FOLDER_NAME_SIZE]);
int silt_shell_code(const char *text); /* of an answer: 0..255 */

/* Lines for the input of a shell, written in one piece. */
struct silt_lines {
    char text[4096]; /* as much as a pipe takes at once: PIPE_BUF */
    size_t len;
    bool broken;
    bool in_file; /* the command lies in a file */
};

struct silt_shell {
    int folder;
    unsigned slot;
    uint32_t mark; /* comes back with the status */
};
/* The status is `mark\0code\0directory\0` in the FIFO `s`; code `x` (then the real one) says that
 * the directory could not be entered. */
int silt_shell_foreground(struct silt_lines *l, const struct silt_shell *sh,
                          const struct silt_start *start, struct silt_error *e);
void silt_shell_save(struct silt_lines *l, const struct silt_shell *sh); /* without traps */
void silt_shell_reload(struct silt_lines *l,
                       const struct silt_shell *sh); /* what foreground saved */
