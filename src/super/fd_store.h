/* SPDX-License-Identifier: Apache-2.0 */
/* fd_store: the descriptors that a new siltd needs to recover every running sandbox: the channel to
 * its silt-init, its pidfd and the channels of its contexts. Kept in silt-super while siltd
 * restarts. */
#pragma once

#include "wire/super.h"

#include <stdbool.h>

struct silt_kept_context {
    uint64_t number;
    int fds[SILT_SUPER_CONTEXT_FDS];
};

struct silt_kept {
    int channel; /* -1: this key is empty */
    int pidfd;
    struct silt_kept_context *contexts; /* owned; unordered */
    uint32_t context_count;
};

struct silt_kept_listener {
    uint64_t number;
    int fd;
};

struct silt_fd_store {
    struct silt_kept *items;              /* by key */
    uint32_t count;                       /* keys are below this */
    struct silt_kept_listener *listeners; /* owned; unordered */
    uint32_t listener_count;
};

void silt_fd_store_init(struct silt_fd_store *k, uint32_t count);
void silt_fd_store_fini(struct silt_fd_store *k);
void silt_fd_store_forget(struct silt_fd_store *k); /* like fini, but closes nothing */
/* Takes both descriptors; closes the previous ones. */
void silt_fd_store_put(struct silt_fd_store *k, uint32_t key, int channel, int pidfd);
void silt_fd_store_drop(struct silt_fd_store *k, uint32_t key); /* fine if empty */
/* Takes the descriptors, unless it returns false: no such sandbox, number taken, or too many
 * contexts. */
bool silt_fd_store_put_context(struct silt_fd_store *k, uint32_t key,
                               const struct silt_kept_context *c);
void silt_fd_store_drop_context(struct silt_fd_store *k, uint32_t key,
                                uint64_t number); /* fine if it does not exist */
/* Takes fd, unless it returns false: number taken, or too many listeners. */
bool silt_fd_store_put_listener(struct silt_fd_store *k, uint64_t number, int fd);
/* fine if it does not exist */
void silt_fd_store_drop_listener(struct silt_fd_store *k, uint64_t number);
