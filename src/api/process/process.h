/* SPDX-License-Identifier: Apache-2.0 */
/* process: helpers shared by the routes for background processes, both the compatible ones and /v1.
 * Runs in siltd. */
#pragma once

#include "api/process/command.h"
#include "sandbox/process/log_follower.h"
#include "sandbox/process/sweep.h"

enum silt_process_detail {
    SILT_PROCESS_LISTED, /* as compatible clients see it in a list */
    SILT_PROCESS_SHOWN,  /* as compatible clients see it alone */
    SILT_PROCESS_NATIVE, /* everything we know */
};

const char *silt_process_status_name(enum silt_process_status status);
void silt_process_json(struct silt_buf *b, const struct silt_process *p,
                       enum silt_process_detail detail);
/* A process without a record, found in the control groups; its id is `pid:` and the pid. */
void silt_found_json(struct silt_buf *b, const struct silt_found *f);
bool silt_found_read_id(silt_slice id, int32_t *ret_pid); /* false: not such an id */
/* Running processes first, then ended ones, each in start order; then `found`, as JSON. */
void silt_process_list_json(struct silt_buf *b, struct silt_sandbox *s, silt_slice status,
                            enum silt_process_detail detail, silt_slice found);

/* Creates a call on the process whose id is in the path; the id is in c->arg. NULL: already
 * answered with an error. */
struct silt_call *silt_process_call(struct silt_http_request *r,
                                    const silt_slice args[SILT_ROUTE_ARGS_MAX]);
/* Finds that process. False: there is none and the request was refused, or its exit is still being
 * recovered and `run` will be called again. */
bool silt_process_is_known(struct silt_call *c, void (*run)(struct silt_call *c),
                           struct silt_process **ret);
/* True if no exit is being recovered; otherwise `run` is called again when that is done. */
bool silt_process_all_known(struct silt_call *c, void (*run)(struct silt_call *c));
void silt_process_refuse_unknown(struct silt_http_request *r, silt_slice id);

/* Starts the requested process and answers, in the /v1 format if `native`. */
struct silt_process_wish {
    struct silt_command command;
    struct silt_process_request request; /* except for what the command already holds */
    bool native;
};
void silt_process_begin(struct silt_call *c, struct silt_process_wish *w);
/* Answers with the reason why a process could not be started. */
void silt_process_refuse_start(struct silt_http_request *r, const struct silt_command *m,
                               silt_slice id, const struct silt_error *e);
bool silt_process_read_id(
    struct silt_call *c,
    silt_slice *ret); /* body.processId; false: already answered with an error */

/* Accepts "SIGTERM", "TERM" or "15"; 0 if it is no signal. */
int silt_signal_of(silt_slice text);
void silt_process_refuse_finished(struct silt_call *c, const struct silt_process *p);
/* From the query, else the body; false: already answered with an error. */
bool silt_signal_read(struct silt_call *c, int *ret);
/* For a process without a record: ends it as silt_process_end does, or only sends the signal. */
void silt_found_signal(struct silt_call *c, int32_t pid, int signal);
void silt_found_end(struct silt_call *c, int32_t pid, int signal, uint32_t grace_ms);
/* Answers once no process of it is left. */
void silt_process_end(struct silt_call *c, struct silt_process *p, int signal, uint32_t grace_ms,
                      bool native);

/* Reads ?cursor=; the default is the oldest entry kept. False: already answered with an error. */
bool silt_cursor_read(struct silt_call *c, struct silt_log_follower_options *o);
void silt_process_stream(struct silt_call *c, struct silt_process *p, bool native);
void silt_process_raw_logs(struct silt_call *c, struct silt_process *p);
/* Reads ?name= as a number of at most `max`; unchanged if absent. False: already answered with an
 * error. */
bool silt_query_number(struct silt_call *c, const char *name, uint64_t max, uint64_t *ret);
/* Adds "base64" to an event whose "data" cannot represent the bytes. */
void silt_process_base64(struct silt_buf *b, silt_slice bytes);
/* Adds "timestamp" to an event: the log's time, if it is a valid one. */
void silt_process_time(struct silt_buf *b, int64_t time_ms);
