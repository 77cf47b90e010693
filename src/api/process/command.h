/* SPDX-License-Identifier: Apache-2.0 */
/* command: the validated body of an execute request and the common parts of its response. Runs in
 * siltd; shared by execute and its streaming variant. An invalid body is answered with 400. */
#pragma once

#include "api/core/session_choice.h"

struct silt_command {
    struct silt_exec_request request; /* slices live as long as the HTTP request */
    struct silt_session_choice choice;
    bool background; /* execute only: a process that is left running */
    bool foreground; /* runs in the session's shell, not beside it */
    bool bytes;      /* streaming only: also send non-text output as base64 */
    bool blank;      /* nothing but white space */
    bool native;     /* below /v1 */
    bool has_input;
    silt_slice input; /* what the command reads from its standard input */
};

/* False: already answered with an error. */
bool silt_command_read(struct silt_call *c, struct silt_command *ret);
/* The fields that commands and processes below /v1 share: command or argv, cwd, env, user,
 * timeoutMs. False: already answered with an error. */
bool silt_command_read_native(struct silt_call *c, struct silt_command *m);
/* body.sessionId; *ret is unchanged if absent or null. */
bool silt_session_name_read(struct silt_call *c, silt_slice *ret);
/* If the command has an input: a memory file with it, which `q` borrows and the caller closes. */
int silt_command_feed(const struct silt_command *m, struct silt_exec_request *q, int *ret_fd,
                      struct silt_error *e);
/* The last step of calls whose c->own is a command: runs it and answers with all of its output, or
 * with events. */
void silt_command_collect(struct silt_call *c);
void silt_command_stream(struct silt_call *c);
/* A number, two numbers with a colon, or a name, or ""; rejects lookalikes. */
bool silt_command_user_is_good(silt_slice user);
/* For commands that run outside the session's shell: checks that neither the command nor its
 * session name is blank. */
bool silt_command_is_whole(struct silt_call *c, const struct silt_command *m);
/* The step of calls whose c->own is a command: its session, unless it runs without one. */
bool silt_command_choose(struct silt_call *c);
/* Writes {"command":…,"stderr":…} and more, as the context of an error. */
void silt_command_context(struct silt_buf *b, const struct silt_command *m, silt_slice text);
/* Writes cause, limit and peak if the command was ended from outside (a signal, a limit, a
 * timeout); nothing otherwise. */
void silt_command_cause(struct silt_buf *b, const struct silt_sandbox *s,
                        const struct silt_agent_end *end);
/* Writes "notice" in the first response of a shell that was restarted because its sandbox crashed;
 * nothing otherwise. */
void silt_command_notice(struct silt_buf *b, struct silt_sandbox *s, const struct silt_command *m);
/* 410: the shell has ended; includes the cause. */
void silt_command_refuse_shell(struct silt_http_request *r, const struct silt_command *m,
                               const struct silt_sandbox *s, const struct silt_agent_end *end);
/* Answers with the reason why a command could not be started. */
void silt_command_refuse_failed(struct silt_http_request *r, const struct silt_command *m,
                                enum silt_api_code code, const struct silt_error *e);

/* The rest of execute with background: true; the call becomes that of starting a process. False:
 * already answered with an error. */
bool silt_process_parse_background(struct silt_call *c, const struct silt_command *m);
