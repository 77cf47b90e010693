/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_line: what siltd and an interpreter process say to each other, one JSON object per line. What
 * comes from there is hostile: parsed strictly, every number checked. */
#pragma once

#include "json/json.h"

/* To the kernel. Each adds one line with its end. */
struct silt_kernel_init {
    const char *language;
    silt_slice cwd;
    silt_slice env;        /* NAME=value\0… */
    silt_slice user;       /* of the image: who a forked process becomes; empty: it stays root */
    uint64_t result_bytes; /* of one format of a result: larger ones are left out */
    bool awaited;          /* code follows at once: nothing is done ahead of it */
};
void silt_kernel_say_init(struct silt_buf *b, const struct silt_kernel_init *i);
void silt_kernel_say_run(struct silt_buf *b, uint64_t id, silt_slice code);
/* `eof` instead of the text: nobody is going to answer. */
void silt_kernel_say_input(struct silt_buf *b, uint64_t id, silt_slice text, bool eof);
void silt_kernel_say_ping(struct silt_buf *b, uint64_t id);

enum silt_kernel_word {
    SILT_KERNEL_READY,
    SILT_KERNEL_STALE,  /* the process was made from another state of the image: start another one */
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
    SILT_KERNEL_TOLD_MAX = 256 << 20, /* a line, each byte of it escaped */
};

struct silt_kernel_said {
    enum silt_kernel_word word;
    uint64_t id;
    uint32_t count;               /* DONE; PONG: of runs so far, if it says so */
    int64_t used_ms;              /* PONG: wall clock at the end of the last of them; 0: it does not say */
    int32_t status;               /* EXIT: 0..255 */
    bool main;                    /* RESULT: of the last expression */
    bool password;                /* INPUT */
    silt_slice name, value;       /* ERROR: ename, evalue; FAILED: code, why; STALE: -, why; INPUT: -, prompt */
    const struct silt_json *body; /* the whole object */
    /* RESULT, ERROR: what callers see of it, as members of a JSON object, between commas; may be empty */
    silt_slice told;
};

/* Slices are of the line, of the arena, and of `told`, which comes empty. Shares nothing: fine on a thread. */
int silt_kernel_hear(struct silt_arena *a, struct silt_buf *told, silt_slice line, struct silt_kernel_said *ret,
                     struct silt_error *e);
