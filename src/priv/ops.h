/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the table of silt-priv's operations and how each is carried out. Every number of a request
 * is checked here; paths are built from slots and digests only. Runs in the workers. */
#pragma once

#include "base/fd.h"
#include "priv/helper.h"

/* A request and its response, with their descriptors. */
struct silt_priv_job {
    struct silt_priv_request request;
    struct silt_parcel in; /* descriptors of the request: closed by the caller */
    struct silt_priv_answer answer;
    struct silt_parcel out; /* descriptors of the response: closed by the caller, after sending */
};

/* Runs the operation and fills in the response. */
void silt_priv_ops_run(struct silt_priv_helper *u, struct silt_priv_job *job);
/* If the response could not be delivered: undoes what siltd does not know about. */
void silt_priv_ops_undo(struct silt_priv_helper *u, const struct silt_priv_job *job);
