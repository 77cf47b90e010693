/* SPDX-License-Identifier: Apache-2.0 */
/* rig: a worker as a child of the test, which plays siltd, and a directory of its own to work in.
 */
#pragma once

#include "base/own.h"
#include "unit/base/unit.h"
#include "wire/worker.h"

#include <sys/types.h>

struct rig {
    int sock;
    pid_t pid;
    char root[64]; /* a temporary directory; the working directory of the test meanwhile */
    char *frame;
};

struct rig *rig_start(void);
/* Closes the socket, waits for the worker to exit and removes the directory. */
void rig_stop(struct rig *r);
/* Only the socket and the worker: what it leaves behind can be looked at. */
void rig_hang_up(struct rig *r);

struct rig_ask {
    uint32_t op, flags;
    const char *path; /* relative ones begin at the root */
    const char *to;
    const char *text;
    size_t text_len; /* 0: as long as `text` is */
    const char *cwd; /* NULL: the root */
    struct silt_worker_ask ask;
};

struct rig_answer {
    bool failed, has_meta, has_done;
    struct silt_error error;
    struct silt_worker_meta meta;
    struct silt_worker_done done;
    char *bytes; /* content, or records, back to back; terminated */
    size_t len;
    size_t frames;
    size_t taken; /* of spans */
};

void rig_ask(struct rig *r, const struct rig_ask *q);
/* From here on the bytes of the upload lie there. */
struct silt_share;
void rig_share(struct rig *r, const struct silt_share *s);
void rig_send_span(struct rig *r, uint64_t offset, uint64_t length, bool last);
void rig_send(struct rig *r, const void *bytes, size_t len, bool last);
/* Everything up to the last frame, with a deadline of twenty seconds for each. */
void rig_hear(struct rig *r, struct rig_answer *ret);
void rig_forget(struct rig_answer *a);

/* Asks and hears. */
struct rig_answer rig_do(struct rig *r, const struct rig_ask *q);
#define RIG_DO(...) rig_do(r, &(struct rig_ask){__VA_ARGS__})
/* The same, and it must succeed, or fail with this errno. */
void rig_must(struct rig *r, const struct rig_ask *q);
#define RIG_MUST(...) rig_must(r, &(struct rig_ask){__VA_ARGS__})
void rig_must_fail(struct rig *r, int sys, const struct rig_ask *q);
#define RIG_MUST_FAIL(sys, ...) rig_must_fail(r, sys, &(struct rig_ask){__VA_ARGS__})

/* Files by themselves. */
void rig_put(const char *path, const char *text);
void assert_file(const char *path, const char *text);
size_t rig_count(const char *directory); /* names in it, hidden ones too */
bool rig_exists(const char *path);       /* links are not followed */
