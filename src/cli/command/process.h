/* SPDX-License-Identifier: Apache-2.0 */
/* process: the background processes of a sandbox, shared by ps, logs, kill and run. */
#pragma once

#include "cli/core/client.h"
#include "cli/core/options.h"

enum { SILT_PROCESS_ROUTE_SIZE = 1024 };

/* Writes /v1/sandboxes/ID/processes, then /NAME unless NULL, then `after`. */
int silt_process_route(char out[SILT_PROCESS_ROUTE_SIZE], const char *id, const char *name,
                       const char *after, struct silt_error *e);
/* Sends TERM and some seconds later KILL; returns when the process is gone. SILT_NOT_FOUND: it had
 * already ended. */
int silt_process_end(struct silt_client *c, const char *id, const char *name, struct silt_error *e);

/* Passes what the descriptor has to the process's standard input until it ends, and closes that.
 * -1: only closes it. */
int silt_process_feed(struct silt_client *c, const char *id, const char *name, int fd,
                      struct silt_error *e);

/* Follows the output of a process. Zero-initialize. */
struct silt_tail {
    const char *id, *name; /* borrowed: sandbox and process */
    bool no_stdout, no_stderr;
    char cursor[64]; /* where the next request continues; "": at the beginning */
    int status;      /* exit status of the process */
};
/* Writes the output of an event. */
int silt_tail_write(const struct silt_json *event, int fd, struct silt_error *e);
/* Writes output as it arrives until the process ends; reconnects after a restart of the daemon. */
int silt_tail_follow(struct silt_tail *t, struct silt_client *c, struct silt_error *e);
