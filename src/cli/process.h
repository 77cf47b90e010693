/* SPDX-License-Identifier: Apache-2.0 */
/* process: background commands of a sandbox, as the commands of silt name them. */
#pragma once

#include "cli/client.h"
#include "cli/options.h"

enum { SILT_PROCESS_ROUTE_SIZE = 1024 };

/* /v1/sandboxes/ID/processes and, unless NULL, /NAME; then `after`. */
int silt_process_route(char out[SILT_PROCESS_ROUTE_SIZE], const char *id, const char *name,
                       const char *after, struct silt_error *e);
/* TERM, some seconds, KILL; returns when nothing of it is left. SILT_NOT_FOUND: it has ended
 * before. */
int silt_process_end(struct silt_client *c, const char *id, const char *name, struct silt_error *e);

/* A reader of a process's output. Zero-initialize. */
struct silt_tail {
    const char *id, *name; /* borrowed: sandbox and process */
    bool no_stdout, no_stderr;
    char cursor[64]; /* where the next reader goes on; "" : at the beginning */
    int status;      /* the process's exit status, as ours */
};
/* The bytes of an event with output. */
int silt_tail_write(const struct silt_json *event, int fd, struct silt_error *e);
/* Writes output as it comes until the process ends; over a restart of the daemon too. */
int silt_tail_follow(struct silt_tail *t, struct silt_client *c, struct silt_error *e);
