/* SPDX-License-Identifier: Apache-2.0 */
/* input: the standard input of a command that siltd fills, through a pipe. We never wait for who
 * reads it: what the pipe does not take stays here, and siltd is told when all of it went. */
#pragma once

#include "agent/channel.h"
#include "base/buf.h"

struct silt_input {
    struct silt_loop *loop;       /* borrowed */
    struct silt_channel *channel; /* borrowed */
    uint64_t id;
    bool wanted;             /* there is a pipe, or will be */
    struct silt_watch watch; /* fd owned: our end; -1: not there yet, or closed */
    struct silt_buf rest;    /* what waits for room */
    uint64_t taken;          /* of what siltd waits for */
    bool owed;               /* siltd waits */
    bool closing;            /* nothing comes after the rest */
};

/* One frame, and what an earlier siltd left; beyond that the contract is broken. */
enum { SILT_INPUT_MAX = 2 * SILT_FRAME_BODY_MAX };

void silt_input_init(struct silt_input *in, struct silt_loop *loop, struct silt_channel *channel);
void silt_input_fini(struct silt_input *in);
/* *ret_theirs is the caller's. */
int silt_input_open(struct silt_input *in, int *ret_theirs, struct silt_error *e);
void silt_input_use(struct silt_input *in, int fd); /* instead: takes one that does not block */
/* May come before it is open, and when there is none. */
void silt_input_add(struct silt_input *in, silt_slice bytes, bool last);
void silt_input_renew(struct silt_input *in); /* a new siltd: nobody waits */
void silt_input_close(struct silt_input *in); /* the command is over */
