/* SPDX-License-Identifier: Apache-2.0 */
/* stop: ends a sandbox's processes and removes its files. Runs in the workers of silt-priv. */
#pragma once

#include "priv/helper.h"

/* Finds the sandbox's first process. SILT_GONE: it is dead. */
int silt_priv_find_init(const struct silt_priv_helper *u, uint32_t slot, int volume, int *ret_pidfd,
                        struct silt_error *e);
/* Returns once no process is left and the sandbox's groups are removed. */
int silt_priv_end_processes(const struct silt_priv_helper *u, uint32_t slot, int volume,
                            struct silt_error *e);
/* The same, and has the janitor release the root. Succeeds if nothing is there. */
int silt_priv_stop(const struct silt_priv_helper *u, uint32_t slot, struct silt_error *e);
/* The same, and moves the files to the trash: the slot is free. Succeeds if nothing is there. */
int silt_priv_destroy(const struct silt_priv_helper *u, uint32_t slot, struct silt_error *e);
