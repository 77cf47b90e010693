/* SPDX-License-Identifier: Apache-2.0 */
/* teller: what of a watch is told: the events that were asked for, on paths that the patterns let
 * through, gathered into frames. */
#pragma once

#include "worker/task.h"

enum { SILT_TELLER_GLOBS_MAX = 1024 };

struct silt_glob;

struct silt_teller {
    struct silt_task *task; /* borrowed */
    struct silt_glob *globs[SILT_TELLER_GLOBS_MAX];
    size_t glob_count;
    uint32_t limits_told; /* since it was set to 0 */
    size_t out_len, last; /* of `out`; where its last event begins */
    _Alignas(struct silt_worker_event) char out[SILT_FRAME_BODY_MAX];
};

/* Zeroed memory. Takes the patterns of the ask. */
int silt_teller_init(struct silt_teller *t, struct silt_task *task, struct silt_error *e);
void silt_teller_fini(struct silt_teller *t);
void silt_teller_flush(struct silt_teller *t, uint32_t flags);
/* Whatever was asked for. */
void silt_teller_say(struct silt_teller *t, uint32_t what, bool is_dir, const char *path);
void silt_teller_tell(struct silt_teller *t, uint32_t what, bool is_dir, const char *path);
void silt_teller_tell_limit(struct silt_teller *t, const char *path); /* as many as are useful */
bool silt_teller_is_excluded(const struct silt_teller *t, const char *path);
