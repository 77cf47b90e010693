/* SPDX-License-Identifier: Apache-2.0 */
/* item: parses the items that workers pack into frames. Pure; the bytes are hostile. */
#pragma once

#include "sandbox/file/worker_pool.h"

/* Each takes the next item off the front of `body`; false if it is malformed. Slices point into the
 * body. */
bool silt_file_entry(silt_slice *body, struct silt_worker_entry *ret, silt_slice *ret_name);
bool silt_file_match(silt_slice *body, struct silt_worker_match *ret, silt_slice *ret_path,
                     silt_slice *ret_text);
/* Parses META: its struct, whose content type is safe to use in a header, and the bytes after
 * it. */
bool silt_file_meta_of(silt_slice body, struct silt_worker_meta *ret, silt_slice *ret_rest);
