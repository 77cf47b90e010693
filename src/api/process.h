/* SPDX-License-Identifier: Apache-2.0 */
/* process: what the routes of background processes share, those of clients and our own. */
#pragma once

#include "api/command.h"
#include "sandbox/follow.h"
#include "sandbox/sweep.h"

enum silt_process_detail {
    SILT_PROCESS_LISTED, /* as clients know it from a list */
    SILT_PROCESS_SHOWN,  /* and by itself */
    SILT_PROCESS_NATIVE, /* all we know */
};

const char *silt_process_status_name(enum silt_process_status status);
void silt_process_json(struct silt_buf *b, const struct silt_process *p, enum silt_process_detail detail);
/* What has no record and is found in the control groups: its id is `pid:` and the number. */
void silt_found_json(struct silt_buf *b, const struct silt_found *f);
bool silt_found_read_id(silt_slice id, int32_t *ret_pid); /* false: it is none of those */
/* Running ones first, each in the order of their starts; behind those `found`, as JSON. */
void silt_process_list_json(struct silt_buf *b, struct silt_sandbox *s, silt_slice status,
                            enum silt_process_detail detail, silt_slice found);

/* A call on the process whose id is in the path: it is in c->arg. NULL: refused. */
struct silt_call *silt_process_call(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX]);
/* That process. False: there is none, and that was said; or its end is being looked for, and `run` comes again. */
bool silt_process_is_known(struct silt_call *c, void (*run)(struct silt_call *c), struct silt_process **ret);
/* True when none is being settled; else `run` comes again when one is. */
bool silt_process_all_known(struct silt_call *c, void (*run)(struct silt_call *c));
void silt_process_refuse_unknown(struct silt_http_request *r, silt_slice id);

/* Starts what the call asks for and answers; `native` in our own way. */
struct silt_process_wish {
    struct silt_command command;
    struct silt_process_request request; /* but for what is in the command */
    bool native;
};
void silt_process_begin(struct silt_call *c, struct silt_process_wish *w);
/* What comes of a start that was refused. */
void silt_process_refuse_start(struct silt_http_request *r, const struct silt_command *m, silt_slice id,
                               const struct silt_error *e);
bool silt_process_read_id(struct silt_call *c, silt_slice *ret); /* body.processId; false: refused */

/* "SIGTERM", "TERM", "15": 0 when it is none. */
int silt_signal_of(silt_slice text);
void silt_process_refuse_finished(struct silt_call *c, const struct silt_process *p);
/* Query, else body; false: refused. */
bool silt_signal_read(struct silt_call *c, int *ret);
/* One that has no record: as silt_process_end, or only the signal. */
void silt_found_signal(struct silt_call *c, int32_t pid, int signal);
void silt_found_end(struct silt_call *c, int32_t pid, int signal, uint32_t grace_ms);
/* Answers when nothing of it is left. */
void silt_process_end(struct silt_call *c, struct silt_process *p, int signal, uint32_t grace_ms, bool native);

/* ?cursor=: from there, else from the oldest that is kept; false: refused. */
bool silt_cursor_read(struct silt_call *c, struct silt_follow_options *o);
void silt_process_stream(struct silt_call *c, struct silt_process *p, bool native);
void silt_process_raw_logs(struct silt_call *c, struct silt_process *p);
/* ?name= as a number of at most `max`; absent: stays as it is; false: refused. */
bool silt_query_number(struct silt_call *c, const char *name, uint64_t max, uint64_t *ret);
/* "base64" of an event whose "data" cannot be the bytes. */
void silt_process_base64(struct silt_buf *b, silt_slice bytes);
/* "timestamp" of an event: what the log says, if it can be a time. */
void silt_process_time(struct silt_buf *b, int64_t time_ms);
