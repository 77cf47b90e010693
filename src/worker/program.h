/* SPDX-License-Identifier: Apache-2.0 */
/* program: a program of the image that works for us, with a pipe to it or from it. Whatever it is, it
 * cannot make us wait when siltd is gone, and it does not outlive us. */
#pragma once

#include "worker/task.h"

struct silt_program {
    struct silt_task *task; /* borrowed */
    const char *name;       /* borrowed */
    pid_t pid;              /* 0: has ended */
    int pipe;               /* owned: its standard input or output, does not block */
    int err;                /* owned: does not block */
    char line[400];         /* that it is saying on its standard error; the beginning of it */
    size_t line_len;
    char said[400];         /* the last line that tells something, terminated */
    bool no_space;          /* it told about a full disk somewhere */
    bool changed;           /* it told about files that changed while it read them */
};

/* SILT_UNAVAILABLE when the image does not have it. */
int silt_program_check(const char *name, struct silt_error *e);
/* Starts argv[0] in the folder `dir`; feeds: the pipe is its input, else its output. */
int silt_program_start(struct silt_program *p, char *const argv[], int dir, bool feeds, struct silt_error *e);
/* 1: `len` bytes were read; 0: the end; -1: siltd is gone. */
int silt_program_read(struct silt_program *p, char *to, size_t size, size_t *ret_len);
/* 1; 0: it does not want any more; -1: siltd is gone. */
int silt_program_write(struct silt_program *p, silt_slice bytes);
/* Closes the pipe and waits. Fails with what it said when it did not end with status 0. */
int silt_program_end(struct silt_program *p, struct silt_error *e);
/* Ends it if it runs, and lets go of all. */
void silt_program_fini(struct silt_program *p);
