/* SPDX-License-Identifier: Apache-2.0 */
/* file_item: what workers pack into frames, taken apart again. The bytes are hostile. */
#pragma once

#include "sandbox/work.h"

/* Each cuts the next item off the body; false: it is malformed. Slices are of the body. */
bool silt_file_entry(silt_slice *body, struct silt_worker_entry *ret, silt_slice *ret_name);
bool silt_file_match(silt_slice *body, struct silt_worker_match *ret, silt_slice *ret_path, silt_slice *ret_text);
/* The struct of META, with a type that is fit for a header, and what follows it. */
bool silt_file_meta_of(silt_slice body, struct silt_worker_meta *ret, silt_slice *ret_rest);
