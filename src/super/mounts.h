/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: the mount namespace of silt-super and the programs it starts. It begins as a copy of the machine's mount
 * table, which would keep every disk and loop device in it busy after the machine has unmounted it; so what no
 * program of ours needs is detached there. */
#pragma once

#include "config/config.h"

/* Enters a new namespace, from which and to which nothing propagates. */
int silt_mounts_leave(const struct silt_config *c, struct silt_error *e);
/* Is a mount at `at` needed for `path`: it holds it, or (whole) lies below it? For tests. */
bool silt_mounts_serves(const char *at, const char *path, bool whole);
