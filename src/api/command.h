/* SPDX-License-Identifier: Apache-2.0 */
/* command: what a request asks to be run, checked; and how its end is told. Shared by execute and its
 * streamed twin. */
#pragma once

#include "api/choice.h"

struct silt_command {
    struct silt_exec_request request; /* slices live as long as the HTTP request */
    struct silt_choice choice;
    bool background;
    bool bytes; /* of a streamed one: output that is no text is told as base64, too */
    bool blank; /* nothing but white space */
};

/* False: refused already. */
bool silt_command_read(struct silt_call *c, struct silt_command *ret);
/* For commands that do not run in the session's shell itself: neither the command nor its session may be blank. */
bool silt_command_is_whole(struct silt_call *c, const struct silt_command *m);
/* Where such a command runs: sets its mode; *ret is NULL for one without a session. False: refused already. */
bool silt_command_place(struct silt_call *c, struct silt_command *m, struct silt_session **ret);
/* {"command":…,"stderr":…} and more, as the context of an error. */
void silt_command_context(struct silt_buf *b, const struct silt_command *m, silt_slice text);
/* cause, limit and peak of an end that was not the command's own doing; nothing for an ordinary one. */
void silt_command_cause(struct silt_buf *b, const struct silt_sandbox *s, const struct silt_agent_end *end);
/* "notice" for the first answer of a shell that is new because its sandbox crashed; nothing for others. */
void silt_command_notice(struct silt_buf *b, struct silt_sandbox *s, const struct silt_command *m);
/* 410 when the shell ended, with its cause. */
void silt_command_refuse_shell(struct silt_http_request *r, const struct silt_command *m,
                               const struct silt_sandbox *s, const struct silt_agent_end *end);
/* What came of a start that failed. */
void silt_command_refuse_failed(struct silt_http_request *r, const struct silt_command *m,
                                enum silt_api_code code, const struct silt_error *e);

/* execute with background: true: starts it, answers with its pid, leaves it running. */
void silt_api_start_background(struct silt_call *c, struct silt_command *m);
