/* SPDX-License-Identifier: Apache-2.0 */
/* flow: bytes from one connection to another. What the one does not take waits in a buffer, and its
 * source is not read meanwhile. */
#pragma once

#include "base/buf.h"

enum { SILT_FLOW_KEEP = 4096 }; /* memory that an empty buffer keeps; more goes back */

/* -1: the connection is broken. What was sent is added to *count. */
int silt_flow_flush(int fd, struct silt_buf *b, uint64_t *count);
int silt_flow_forward(int fd, struct silt_buf *b, silt_slice bytes, uint64_t *count);
/* Dead peers are noticed, small pieces leave at once. */
void silt_flow_keep_alive(int fd);
void silt_flow_reset_at_close(int fd); /* fine with -1 */
