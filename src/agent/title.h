/* SPDX-License-Identifier: Apache-2.0 */
/* title: what /proc/1/cmdline shows. Whoever looks there expects the program of the container, which is our child. */
#pragma once

#include "base/slice.h"

/* Arguments, each with its NUL. Where the kernel refuses (CONFIG_CHECKPOINT_RESTORE), our own stay. */
void silt_title_set(silt_slice arguments);
