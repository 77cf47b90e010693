/* SPDX-License-Identifier: Apache-2.0 */
/* end: how a sandbox's processes and files come to their end. */
#pragma once

#include "priv/unit.h"

/* The sandbox's first process, if it lives. SILT_GONE: it does not. */
int silt_priv_find_init(const struct silt_priv_unit *u, uint32_t slot, int volume, int *ret_pidfd,
                        struct silt_error *e);
/* Answers when no process is left and its groups are removed. */
int silt_priv_end_processes(const struct silt_priv_unit *u, uint32_t slot, int volume,
                            struct silt_error *e);
/* The same, and the janitor lets go of the root. Fine when nothing is there. */
int silt_priv_stop(const struct silt_priv_unit *u, uint32_t slot, struct silt_error *e);
/* And the files are out of the way: the slot is free. Fine when nothing is there. */
int silt_priv_destroy(const struct silt_priv_unit *u, uint32_t slot, struct silt_error *e);
