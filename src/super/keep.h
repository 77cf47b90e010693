/* SPDX-License-Identifier: Apache-2.0 */
/* keep: the descriptor store: for each sandbox the channel to its silt-init and its pidfd, and what
 * its contexts talk through, so that a new siltd finds every running sandbox again. */
#pragma once

#include "wire/super.h"

#include <stdbool.h>

struct silt_kept_context {
    uint64_t number;
    int fds[SILT_SUPER_CONTEXT_FDS];
};

struct silt_kept {
    int channel; /* -1: nothing is kept under this key */
    int pidfd;
    struct silt_kept_context *contexts; /* owned; in no order */
    uint32_t context_count;
};

struct silt_kept_listener {
    uint64_t number;
    int fd;
};

struct silt_keep {
    struct silt_kept *items; /* by key */
    uint32_t count;          /* keys are below it */
    struct silt_kept_listener *listeners; /* owned; in no order */
    uint32_t listener_count;
};

void silt_keep_init(struct silt_keep *k, uint32_t count);
void silt_keep_fini(struct silt_keep *k);
/* Takes both descriptors; what was there before is closed. */
void silt_keep_put(struct silt_keep *k, uint32_t key, int channel, int pidfd);
void silt_keep_drop(struct silt_keep *k, uint32_t key); /* fine when nothing is there */
/* Takes the descriptors, unless it answers false: there is no such sandbox, it has one of that number
 * or too many. */
bool silt_keep_put_context(struct silt_keep *k, uint32_t key, const struct silt_kept_context *c);
void silt_keep_drop_context(struct silt_keep *k, uint32_t key, uint64_t number); /* fine when … */
/* Takes fd, unless it answers false: there is one of that number, or there are too many. */
bool silt_keep_put_listener(struct silt_keep *k, uint64_t number, int fd);
void silt_keep_drop_listener(struct silt_keep *k, uint64_t number); /* fine when … */
