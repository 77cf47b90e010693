/* SPDX-License-Identifier: Apache-2.0 */
/* rig: the real silt-init as PID 1 of its own process and mount namespaces, with handles made by
 * the test, which plays siltd. Needs root and cgroups; without them the tests skip and say so. */
#pragma once

#include "base/own.h"
#include "unit/base/unit.h"
#include "wire/agent.h"

#include <sys/types.h>

/* For what must come: long enough for the busiest machine, because who gets it does not wait. */
enum { RIG_PATIENCE_MS = 60000 };

struct rig_options {
    int mode;         /* of cgroups: 1 (default) or 2 */
    unsigned handles; /* at birth; default 4 */
    uint64_t memory;  /* limit of the guest's group in bytes; 0: no such group */
    unsigned pids;    /* limit of the guest's group; 0: no such group */
};

struct rig_frame {
    struct silt_frame head;
    char body[SILT_FRAME_BODY_MAX];
    size_t len;
};

/* One exec as siltd would see it. */
struct rig_exec {
    uint64_t id;
    const char *command;
    const char *cwd;
    const char *env;     /* NAME=value\n… */
    const char *env_raw; /* instead: NAME=value\0… */
    size_t env_raw_len;
    uint32_t mode;
    uint32_t timeout_ms;
    uint64_t session;
    const char *user;
    const char *args[8]; /* with SILT_START_ARGV: the command, up to NULL */
    uint32_t flags;      /* SILT_START_… */
    int log, secret;     /* borrowed: for the flags of that name */
    int pipes[3];        /* borrowed: with SILT_START_PIPES */

    bool started, ended, failed;
    int32_t pid;
    char *out, *err; /* terminated */
    size_t out_len, err_len;
    bool keep_credit; /* do not credit what comes */
    struct silt_agent_end end;
    char cwd_now[PATH_MAX + 1];
    struct silt_error error;
};

struct rig;
/* NULL: this machine does not let us; the test has been skipped. */
struct rig *rig_start(const struct rig_options *o);
void rig_stop(struct rig *r);
#define RIG(...)                                                                                   \
    struct rig *r = rig_start(&(struct rig_options){__VA_ARGS__});                                 \
    if (r == NULL)                                                                                 \
    skip()

void rig_say(struct rig *r, uint32_t type, uint64_t id, const void *body, size_t len);
void rig_say_frame(struct rig *r, struct silt_frame *f, size_t body_len);
void rig_say_fds(struct rig *r, uint32_t type, uint64_t id, const int *fds, int count);
/* The next frame, with a deadline of RIG_PATIENCE_MS. */
void rig_hear(struct rig *r, struct rig_frame *ret);
bool rig_hears(struct rig *r, struct rig_frame *ret, int timeout_ms);
/* Hears until a frame of that type about that id; other frames are given to their execs. */
void rig_expect(struct rig *r, uint32_t type, uint64_t id, struct rig_frame *ret);

void rig_give_handles(struct rig *r, unsigned how_many);
uint64_t rig_open(struct rig *r, const char *cwd,
                  const char *env);   /* waits for OPENED; answers the id */
int32_t rig_shell_pid(struct rig *r); /* of the session opened last; as silt-init sees it */
pid_t rig_outer_pid(struct rig *r, int32_t inner); /* of a child of silt-init, as we see it */
void rig_close(struct rig *r, uint64_t session);
void rig_send(struct rig *r, struct rig_exec *x); /* EXEC; known to the rig until it has ended */
void rig_send_large(struct rig *r, struct rig_exec *x, silt_slice command); /* in a memfd */
void rig_until_started(struct rig *r, struct rig_exec *x);
void rig_until_ended(struct rig *r, struct rig_exec *x);
void rig_until_out(struct rig *r, struct rig_exec *x, const char *text); /* is in the output */
void rig_forget(struct rig *r, const struct rig_exec *x); /* the test hears about it itself */
void rig_free(struct rig_exec *x);
/* Sends and waits. */
void rig_run(struct rig *r, struct rig_exec *x);
/* In a session; fails unless the output is exactly that. Answers the code. */
int rig_check(struct rig *r, uint64_t session, const char *command, const char *out,
              const char *err);

/* Starts a shell with that command inside, as somebody outside does it, and has it adopted as exec
 * `id`. It is our child: the caller reaps it. */
pid_t rig_adopt(struct rig *r, uint64_t id, const char *command);

unsigned rig_count(struct rig *r, unsigned handle); /* threads in a handle */
unsigned rig_count_all(struct rig *r);
/* Waits until there are so many in all handles: a shell that waits for background commands comes
 * and goes by itself. */
void rig_until_count(struct rig *r, unsigned count);
void rig_until_crowd(struct rig *r, unsigned least); /* that many, of whom some may be gone again */
bool rig_alive(struct rig *r);
pid_t rig_pid(struct rig *r); /* silt-init, as we see it */
void rig_cut(struct rig *r);  /* closes siltd's end */
int64_t rig_now_us(void);
size_t rig_directory_files(struct rig *r, char *names,
                           size_t size); /* in /dev/silt; names by spaces */
