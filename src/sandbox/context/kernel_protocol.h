/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_protocol: builds and parses the messages between siltd and an interpreter process, one
 * JSON object per line. The interpreter is untrusted: lines are parsed strictly and every number is
 * checked. */
#pragma once

#include "json/json.h"

/* To the kernel. Each function appends one line with its newline. */
struct silt_kernel_init {
    const char *language;
    silt_slice cwd;
    silt_slice env;        /* NAME=value\0… */
    silt_slice user;       /* user that a forked process switches to; empty: stays root */
    uint64_t result_bytes; /* per format of a result: larger ones are omitted */
    bool awaited;          /* code follows at once: no work ahead of it */
};
void silt_kernel_say_init(struct silt_buf *b, const struct silt_kernel_init *i);
void silt_kernel_say_run(struct silt_buf *b, uint64_t id, silt_slice code);
/* `eof` instead of text: no input will come. */
void silt_kernel_say_input(struct silt_buf *b, uint64_t id, silt_slice text, bool eof);
void silt_kernel_say_ping(struct silt_buf *b, uint64_t id);

enum silt_kernel_word {
    SILT_KERNEL_READY,
    SILT_KERNEL_STALE,  /* forked from an outdated state of the image: start a new process */
    SILT_KERNEL_FAILED, /* code, why */
    SILT_KERNEL_RESULT,
    SILT_KERNEL_ERROR,
    SILT_KERNEL_INPUT,
    SILT_KERNEL_DONE,
    SILT_KERNEL_EXIT,
    SILT_KERNEL_PONG,
    SILT_KERNEL_WORD_MAX
};

enum {
    SILT_KERNEL_TREE_MAX = 128 << 20, /* memory of a parsed line */
    SILT_KERNEL_TOLD_MAX = 256 << 20, /* a line with every byte escaped */
};

struct silt_kernel_said {
    enum silt_kernel_word word;
    uint64_t id;
    uint32_t count;  /* DONE; PONG: runs so far, if reported */
    int64_t used_ms; /* PONG: wall clock at the end of the last run; 0: not reported */
    int32_t status;  /* EXIT: 0..255 */
    bool main;       /* RESULT: of the last expression */
    bool password;   /* INPUT */
    /* ERROR: ename, evalue; FAILED: code, why; STALE: -, why; INPUT: -, prompt. */
    silt_slice name, value;
    const struct silt_json *body; /* the whole object */
    /* RESULT, ERROR: the part shown to clients, as comma-separated members of a JSON object; may be
     * empty. */
    silt_slice told;
};

/* Slices point into the line, the arena and `told`, which must be empty. No shared state: may run
 * on a thread. */
int silt_kernel_hear(struct silt_arena *a, struct silt_buf *told, silt_slice line,
                     struct silt_kernel_said *ret, struct silt_error *e);
