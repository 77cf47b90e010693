/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: the operations on recovery records (engine/recovery.h), in a worker of silt-priv. */
#pragma once

#include "priv/ops.h"

int silt_priv_run_record(struct silt_priv_unit *u, struct silt_priv_job *job, struct silt_error *e);
int silt_priv_run_records(struct silt_priv_unit *u, struct silt_priv_job *job, struct silt_error *e);
int silt_priv_run_read_record(struct silt_priv_unit *u, struct silt_priv_job *job, struct silt_error *e);
/* That of the job's slot, if one came as descriptor `at`. */
int silt_priv_put_record(struct silt_priv_unit *u, const struct silt_priv_job *job, int at, struct silt_error *e);
