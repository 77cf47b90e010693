/* SPDX-License-Identifier: Apache-2.0 */
/* dev_silt: /dev/silt, a tmpfs inside the sandbox with the FIFOs and short-lived files between
 * shells and silt-init. The guest's root can write to it, so nothing in it is trusted: every file
 * is checked after opening, and no open blocks. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <sys/types.h>

#define SILT_DEV_SILT "/dev/silt/"

enum { SILT_DEV_SILT_NAME_SIZE = 8 };

/* Owner of a file: only this user and root can access it. */
struct silt_owner {
    uid_t uid;
    gid_t gid;
};

/* The descriptor stays open until the process exits. */
int silt_dev_silt_open(int *ret_directory, struct silt_error *e);
/* Lets other users than root open their files by name; they can neither list nor create any. */
int silt_dev_silt_admit(int directory, struct silt_error *e);
/* Creates a FIFO, replacing whatever has the name. */
int silt_dev_silt_make_fifo(int directory, const char *name, struct silt_owner owner,
                            struct silt_error *e);
/* The same, and opens it: for reading, or for reading and writing. */
int silt_dev_silt_fifo(int directory, const char *name, struct silt_owner owner, int access,
                       int *ret_fd, struct silt_error *e);
/* Opens another end of a FIFO that we created. */
int silt_dev_silt_fifo_again(int directory, const char *name, int access, int *ret_fd,
                             struct silt_error *e);
/* Creates an empty file, replacing whatever has the name. */
int silt_dev_silt_create(int directory, const char *name, struct silt_owner owner, int *ret_fd,
                         struct silt_error *e);
/* Opens a regular file that a shell has written, and removes its name. */
int silt_dev_silt_collect(int directory, const char *name, int *ret_fd, struct silt_error *e);
/* Whether a regular file ends with these bytes. */
bool silt_dev_silt_ends_with(int directory, const char *name, silt_slice tail);
void silt_dev_silt_remove(int directory, const char *name);
