/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: the operations on recovery records (engine/storage/recovery.h), in a worker of
 * silt-priv. */
#pragma once

#include "priv/ops.h"

int silt_priv_run_record(struct silt_priv_helper *u, struct silt_priv_job *job,
                         struct silt_error *e);
int silt_priv_run_records(struct silt_priv_helper *u, struct silt_priv_job *job,
                          struct silt_error *e);
int silt_priv_run_read_record(struct silt_priv_helper *u, struct silt_priv_job *job,
                              struct silt_error *e);
/* Stores the record of the job's slot, if descriptor `at` carries one. */
int silt_priv_put_record(struct silt_priv_helper *u, const struct silt_priv_job *job, int at,
                         struct silt_error *e);
