/* SPDX-License-Identifier: Apache-2.0 */
/* program: runs a program of the image with a pipe to or from it. The program is untrusted: it
 * cannot keep the worker waiting after siltd is gone, and does not outlive the worker. */
#pragma once

#include "worker/task.h"

struct silt_program {
    struct silt_task *task; /* borrowed */
    const char *name;       /* borrowed */
    pid_t pid;              /* 0: has ended */
    int pipe;               /* owned: its standard input or output, non-blocking */
    int err;                /* owned: non-blocking */
    char line[400];         /* start of the current line on its standard error */
    size_t line_len;
    char said[400]; /* the last meaningful line, NUL-terminated */
    bool no_space;  /* it reported a full disk */
    bool changed;   /* it reported files that changed while it read them */
};

/* SILT_UNAVAILABLE if the image does not have it. */
int silt_program_check(const char *name, struct silt_error *e);
/* Starts argv[0] in the directory `dir`; feeds: the pipe is its input, else its output. */
int silt_program_start(struct silt_program *p, char *const argv[], int dir, bool feeds,
                       struct silt_error *e);
/* 1: `len` bytes were read; 0: end of file; -1: siltd is gone. */
int silt_program_read(struct silt_program *p, char *to, size_t size, size_t *ret_len);
/* 1: written; 0: the program closed its input; -1: siltd is gone. */
int silt_program_write(struct silt_program *p, silt_slice bytes);
/* Closes the pipe and waits. Fails with the program's last message unless it exits with status
 * 0. */
int silt_program_end(struct silt_program *p, struct silt_error *e);
/* Kills it if it runs, and releases everything. */
void silt_program_fini(struct silt_program *p);
