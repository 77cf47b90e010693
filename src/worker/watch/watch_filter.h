/* SPDX-License-Identifier: Apache-2.0 */
/* watch_filter: selects the events of a watch to report, by requested kinds and path patterns, and
 * collects them into frames. */
#pragma once

#include "worker/task.h"

enum { SILT_WATCH_FILTER_GLOBS_MAX = 1024, SILT_WATCH_FILTER_GLOB_MAX = 1024 /* bytes */ };

struct silt_watch_filter {
    struct silt_task *task; /* borrowed */
    silt_slice globs[SILT_WATCH_FILTER_GLOBS_MAX];
    size_t glob_count;
    uint32_t limits_told; /* since it was set to 0 */
    size_t out_len, last; /* of `out`; where its last event begins */
    _Alignas(struct silt_worker_event) char out[SILT_FRAME_BODY_MAX];
};

/* On zeroed memory. The patterns stay in the request, and no other is read during a watch. */
int silt_watch_filter_init(struct silt_watch_filter *t, struct silt_task *task,
                           struct silt_error *e);
void silt_watch_filter_flush(struct silt_watch_filter *t, uint32_t flags);
/* Reports it even if it was not requested. */
void silt_watch_filter_say(struct silt_watch_filter *t, uint32_t what, bool is_dir,
                           const char *path);
void silt_watch_filter_tell(struct silt_watch_filter *t, uint32_t what, bool is_dir,
                            const char *path);
void silt_watch_filter_tell_limit(struct silt_watch_filter *t,
                                  const char *path); /* reports a useful number of them only */
bool silt_watch_filter_is_excluded(const struct silt_watch_filter *t, const char *path);
