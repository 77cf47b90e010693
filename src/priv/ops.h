/* SPDX-License-Identifier: Apache-2.0 */
/* ops: the table of what silt-priv may be asked, and how each is done. Every number is checked
 * here; paths are built from slots and digests only. */
#pragma once

#include "base/fd.h"
#include "priv/unit.h"

/* A request with its descriptors; the answer with its own. */
struct silt_priv_job {
    struct silt_priv_request request;
    struct silt_parcel in; /* descriptors that come with it: closed by the caller */
    struct silt_priv_answer answer;
    struct silt_parcel out; /* descriptors that go with it: closed by the caller, after sending */
};

/* Does it and fills in the answer. */
void silt_priv_ops_run(struct silt_priv_unit *u, struct silt_priv_job *job);
/* The answer did not reach anybody: undoes what nobody knows of. */
void silt_priv_ops_undo(struct silt_priv_unit *u, const struct silt_priv_job *job);
