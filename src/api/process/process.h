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

/* silt_call_begin for a route with the id of a process in its path, which is then in c->arg. */
void silt_process_call(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX],
                       const struct silt_call_kind *kind);
/* Steps of such calls: find c->process, or refuse. They wait while its exit is being recovered. */
bool silt_process_choose(struct silt_call *c);
bool silt_process_choose_any(struct silt_call *c); /* NULL: it has no record, the id is `pid:` … */
bool silt_process_choose_all(struct silt_call *c); /* only waits, for all of the sandbox */
void silt_process_refuse_unknown(struct silt_http_request *r, silt_slice id);

/* A process to start; c->own points to its command. */
struct silt_process_wish {
    struct silt_command command;
    struct silt_process_request request; /* except for what the command already holds */
};
struct silt_process_wish *silt_process_wish_new(struct silt_call *c);
/* The last step: starts it and answers. */
void silt_process_begin(struct silt_call *c);
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
void silt_found_signal(struct silt_call *c, int signal);
void silt_found_end(struct silt_call *c, int signal, uint32_t grace_ms);
/* Ends c->process; answers once no process of it is left. */
void silt_process_end(struct silt_call *c, int signal, uint32_t grace_ms);

/* Reads ?cursor=; the default is the oldest entry kept. False: already answered with an error. */
bool silt_cursor_read(struct silt_call *c, struct silt_log_follower_options *o);
/* Reads ?name= as a number of at most `max`; unchanged if absent. False: already answered with an
 * error. */
bool silt_query_number(struct silt_call *c, const char *name, uint64_t max, uint64_t *ret);
/* Begins an event `stdout` or `stderr` with the data of a piece of a log; `bytes`: with "base64"
 * where "data" cannot represent them. `end` also adds the rest of an incomplete character. False:
 * there is nothing to send, only part of a character or only NULs. */
bool silt_process_output(struct silt_buf *b, struct silt_json_escape *x,
                         const struct silt_log_reader_piece *piece, bool bytes, bool end);
/* Adds "timestamp" to an event: the log's time, if it is a valid one. */
void silt_process_time(struct silt_buf *b, int64_t time_ms);
