/* SPDX-License-Identifier: Apache-2.0 */
/* loopdev: the loop device of the pool file. silt-super attaches it, silt-priv resizes it when the
 * file has grown. The kernel detaches it with its last user. */
#pragma once

#include "base/error.h"

/* Opens the device attached to this file; -1: none. */
int silt_loopdev_find(int image);
/* Like silt_loopdev_find, but attaches a new device if there is none. */
int silt_loopdev_attach(int image, int *ret_fd, struct silt_error *e);
/* Sets the device's size to the file's. */
int silt_loopdev_resize(int loop, struct silt_error *e);
