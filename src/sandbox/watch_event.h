/* SPDX-License-Identifier: Apache-2.0 */
/* watch_event: the events in a frame of a worker that watches (wire/worker.h), which may lie. */
#pragma once

#include "base/slice.h"
#include "wire/worker.h"

/* Cuts the first event off what is left of a frame; its path is absolute and has no NUL. 1: it is
 * there, 0: there is none, -1: the worker broke the contract. */
int silt_watch_event_next(silt_slice *rest, struct silt_worker_event *ret, silt_slice *ret_path);
