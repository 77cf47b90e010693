/* SPDX-License-Identifier: Apache-2.0 */
/* progress: shows the progress of a long transfer in one line on standard error. Shows nothing
 * during the first second, or if standard error is not a terminal. */
#pragma once

#include "base/slice.h"

enum { SILT_PROGRESS_NAME_SIZE = 64, SILT_PROGRESS_LINE_SIZE = 256 };

struct silt_progress {
    char name[SILT_PROGRESS_NAME_SIZE];
    uint64_t total; /* 0: unknown; an estimate if measured from a directory */
    uint64_t done;
    int64_t start_us, painted_us;
    bool live;  /* standard error is a terminal */
    bool shown; /* the line is visible */
};

void silt_progress_start(struct silt_progress *p, const char *name, uint64_t total);
/* Shows a message until the first byte or the end; NULL: removes it. */
void silt_progress_tell(const struct silt_progress *p, const char *what);
void silt_progress_add(struct silt_progress *p, uint64_t bytes);
/* Leaves the last line on the terminal as the summary. */
void silt_progress_end(struct silt_progress *p);

/* The current line, at most `width` columns wide. */
void silt_progress_line(const struct silt_progress *p, int64_t now_us, size_t width,
                        char out[SILT_PROGRESS_LINE_SIZE]);
