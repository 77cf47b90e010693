/* SPDX-License-Identifier: Apache-2.0 */
/* git_report: what git says while it clones: progress, and why it failed. The text comes from
 * inside a sandbox and from strangers' servers. */
#pragma once

#include "api/reply.h"
#include "base/buf.h"

enum { SILT_GIT_LINE_MAX = 1024, SILT_GIT_STDERR_MAX = 32 << 10 };

struct silt_git_progress {
    silt_slice phase, text;
    int percent; /* -1: not told */
};

/* Lines of a stream that comes in pieces. A line that a carriage return takes back was progress. */
struct silt_git_report {
    struct silt_buf lines; /* the whole ones that were no progress; at the end the last
                              SILT_GIT_STDERR_MAX bytes of them */
    size_t len;
    char line[SILT_GIT_LINE_MAX];
    void (*progress)(struct silt_git_report *r,
                     const struct silt_git_progress *p); /* may be NULL */
};

void silt_git_report_init(struct silt_git_report *r);
void silt_git_report_fini(struct silt_git_report *r);
void silt_git_report_add(struct silt_git_report *r, silt_slice bytes);
void silt_git_report_end(struct silt_git_report *r);

/* `Receiving objects:  42% (21/50), 1.2 MiB` */
bool silt_git_progress_read(silt_slice line, struct silt_git_progress *ret);
/* One of SILT_API_GIT_…, by the cause, as /v1 tells it. */
enum silt_api_code silt_git_classify(int exit_code, silt_slice text);
/* The coarser choice of the official server, for the routes and calls that are compatible with it. */
enum silt_api_code silt_git_classify_official(int exit_code, silt_slice text);
