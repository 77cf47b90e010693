/* SPDX-License-Identifier: Apache-2.0 */
/* folder: /dev/silt, a tmpfs of ours inside the sandbox, where shells and silt-init meet: FIFOs and
 * short-lived files. Root of the guest can get in, so nothing found there is trusted: what we open
 * is looked at first and never waited for. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <sys/types.h>

#define SILT_FOLDER "/dev/silt/"

enum { SILT_FOLDER_NAME_SIZE = 8 };

/* Whose a file is: only they, and root, get at it. */
struct silt_owner {
    uid_t uid;
    gid_t gid;
};

/* The descriptor of the folder lives as long as the process. */
int silt_folder_open(int *ret_folder, struct silt_error *e);
/* Users other than root reach what is theirs by its name; they cannot see or make any. */
int silt_folder_admit(int folder, struct silt_error *e);
/* A new FIFO in the place of whatever had the name. */
int silt_folder_make_fifo(int folder, const char *name, struct silt_owner owner, struct silt_error *e);
/* Likewise, with an end of it for us: for reading, or both ways. */
int silt_folder_fifo(int folder, const char *name, struct silt_owner owner, int access, int *ret_fd,
                     struct silt_error *e);
/* Another end of a FIFO that we made. */
int silt_folder_fifo_again(int folder, const char *name, int access, int *ret_fd,
                           struct silt_error *e);
/* A new, empty file in the place of whatever had the name. */
int silt_folder_create(int folder, const char *name, struct silt_owner owner, int *ret_fd,
                       struct silt_error *e);
/* A regular file that a shell has written. The name is gone afterwards. */
int silt_folder_collect(int folder, const char *name, int *ret_fd, struct silt_error *e);
/* Whether a regular file ends with these bytes. */
bool silt_folder_ends_with(int folder, const char *name, silt_slice tail);
void silt_folder_remove(int folder, const char *name);
