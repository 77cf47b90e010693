/* SPDX-License-Identifier: Apache-2.0 */
/* report: parses git's progress and error output during a clone. Runs in siltd; the text comes from
 * inside a sandbox and from remote servers, so it is hostile. */
#pragma once

#include "api/core/reply.h"
#include "base/buf.h"

enum { SILT_GIT_LINE_MAX = 1024, SILT_GIT_STDERR_MAX = 32 << 10 };

struct silt_git_progress {
    silt_slice phase, text;
    int percent; /* -1: unknown */
};

/* Splits a stream that arrives in pieces into lines. A line ended by a carriage return is
 * progress. */
struct silt_git_report {
    struct silt_buf lines; /* complete lines other than progress; after the end, the last
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
/* The SILT_API_GIT_… code for the cause of the failure, as /v1 reports it. */
enum silt_api_code silt_git_classify(int exit_code, silt_slice text);
/* The official server's coarser codes, for compatible routes and RPC calls. */
enum silt_api_code silt_git_classify_official(int exit_code, silt_slice text);
