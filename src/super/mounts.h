/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: the mount namespace of silt-super and its programs. It starts as a copy of the machine's
 * mount table and would keep every disk and loop device in it busy after the machine unmounts it;
 * so everything our programs do not need is detached. */
#pragma once

#include "config/config.h"

/* Enters a new mount namespace without propagation in either direction. */
int silt_mounts_leave(const struct silt_config *c, struct silt_error *e);
/* Whether the mount at `at` is needed for `path`: it contains it, or (whole) lies below it. For
 * tests. */
bool silt_mounts_serves(const char *at, const char *path, bool whole);
