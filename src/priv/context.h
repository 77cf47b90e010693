/* SPDX-License-Identifier: Apache-2.0 */
/* context: the requests of a worker about contexts that are forked from a warm Python
 * (priv/zygote_parent.h). */
#pragma once

#include "priv/ops.h"

int silt_priv_run_context(struct silt_priv_helper *u, struct silt_priv_job *job,
                          struct silt_error *e);
int silt_priv_run_reap(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e);
