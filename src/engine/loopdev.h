/* SPDX-License-Identifier: Apache-2.0 */
/* loopdev: the loop device through which the pool file is a disk. Runs in silt-super, which attaches
 * it, and in silt-priv, which tells it that the file has grown. It goes with its last user. */
#pragma once

#include "base/error.h"

/* The device that serves this very file; -1: there is none. */
int silt_loopdev_find(int image);
/* The same, or a new one. */
int silt_loopdev_attach(int image, int *ret_fd, struct silt_error *e);
/* Its size follows the file's. */
int silt_loopdev_resize(int loop, struct silt_error *e);
