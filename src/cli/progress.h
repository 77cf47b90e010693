/* SPDX-License-Identifier: Apache-2.0 */
/* progress: one line on a terminal that says how far a long transfer is. Nothing is shown in its
 * first second, nor when standard error is no terminal. */
#pragma once

#include "base/slice.h"

enum { SILT_PROGRESS_NAME_SIZE = 64, SILT_PROGRESS_LINE_SIZE = 256 };

struct silt_progress {
    char name[SILT_PROGRESS_NAME_SIZE];
    uint64_t total; /* 0: not known; a guess when it came from looking at a folder */
    uint64_t done;
    int64_t start_us, painted_us;
    bool live;  /* standard error is a terminal */
    bool shown; /* the line is on it */
};

void silt_progress_start(struct silt_progress *p, const char *name, uint64_t total);
/* What happens before the first byte, until that comes or the end; NULL: takes it away. */
void silt_progress_tell(const struct silt_progress *p, const char *what);
void silt_progress_add(struct silt_progress *p, uint64_t bytes);
/* Leaves the last line where it is, as the summary. */
void silt_progress_end(struct silt_progress *p);

/* The line for this moment, in at most `width` columns. */
void silt_progress_line(const struct silt_progress *p, int64_t now_us, size_t width,
                        char out[SILT_PROGRESS_LINE_SIZE]);
