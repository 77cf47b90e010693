/* SPDX-License-Identifier: Apache-2.0 */
/* input: the standard input of a command, a pipe that siltd fills. Never blocks on the reader: what
 * does not fit into the pipe is kept here, and siltd is notified when all of it is written. */
#pragma once

#include "agent/output/channel.h"
#include "base/buf.h"

struct silt_input {
    struct silt_loop *loop;       /* borrowed */
    struct silt_channel *channel; /* borrowed */
    uint64_t id;
    bool wanted;             /* there is or will be a pipe */
    struct silt_watch watch; /* fd owned: our end; -1: not open yet, or closed */
    struct silt_buf rest;    /* bytes not written yet */
    uint64_t taken;          /* bytes accepted of those siltd waits for */
    bool owed;               /* siltd waits for STDIN_TAKEN */
    bool closing;            /* close after the rest is written */
};

/* One frame, plus what an earlier siltd left; more violates the protocol. */
enum { SILT_INPUT_MAX = 2 * SILT_FRAME_BODY_MAX };

void silt_input_init(struct silt_input *in, struct silt_loop *loop, struct silt_channel *channel);
void silt_input_fini(struct silt_input *in);
/* The caller owns *ret_theirs. */
int silt_input_open(struct silt_input *in, int *ret_theirs, struct silt_error *e);
/* alternative to open: takes a non-blocking descriptor */
void silt_input_use(struct silt_input *in, int fd);
/* May be called before open, and without a pipe. */
void silt_input_add(struct silt_input *in, silt_slice bytes, bool last);
void silt_input_renew(struct silt_input *in); /* a new siltd: nothing is pending */
void silt_input_close(struct silt_input *in); /* the command is over */
