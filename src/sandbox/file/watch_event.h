/* SPDX-License-Identifier: Apache-2.0 */
/* watch_event: parses the events in a frame of a watching worker (wire/worker.h). The worker is
 * untrusted. */
#pragma once

#include "base/slice.h"
#include "wire/worker.h"

/* Removes the first event from the rest of a frame; its path is absolute and has no NUL. 1: an
 * event, 0: none left, -1: protocol violation. */
int silt_watch_event_next(silt_slice *rest, struct silt_worker_event *ret, silt_slice *ret_path);
