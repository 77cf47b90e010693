/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/command.h"

bool silt_command_read(struct silt_call *c, struct silt_command *m)
{
    *m = (struct silt_command){0};
    if (!silt_body_string(c, "command", &m->request.command)
        || !silt_body_string(c, "cwd", &m->request.cwd)
        || !silt_body_env(c, "env", SILT_ENV_MAX, &m->request.env)
        || !silt_body_ms(c, "timeoutMs", &m->request.timeout_ms)
        || !silt_body_bool(c, "background", &m->background)
        || !silt_session_choice_read(c, &m->choice))
        return false;
    if (m->request.cwd.len >= PATH_MAX) {
        silt_api_refuse_field(c->request, "cwd", "is longer than 4095 bytes");
        return false;
    }
    if (m->request.command.len > SILT_COMMAND_MAX) {
        silt_api_refuse(c->request, SILT_API_BODY_TOO_LARGE, (silt_slice){NULL, 0},
                        "command: %zu bytes, at most %d", m->request.command.len, SILT_COMMAND_MAX);
        return false;
    }
    m->blank = silt_is_blank(m->request.command);
    return true;
}

bool silt_command_is_whole(struct silt_call *c, const struct silt_command *m)
{
    struct silt_error e;
    if (m->blank) {
        silt_api_refuse(c->request, SILT_API_INVALID_COMMAND, (silt_slice){NULL, 0},
                        "command: is required and must not be blank");
        return false;
    }
    if (!m->choice.blank)
        return true;
    (void)silt_fail(&e, SILT_INVALID, "a session id cannot be blank");
    silt_command_refuse_failed(c->request, m, SILT_API_STREAM_START, &e);
    return false;
}

bool silt_command_choose(struct silt_call *c)
{
    struct silt_command *m = c->own;
    struct silt_error e;
    m->request.mode = m->choice.plain ? SILT_EXEC_PLAIN
                      : m->foreground ? SILT_EXEC_FOREGROUND
                                      : SILT_EXEC_BACKGROUND;
    if (m->choice.plain)
        return true;
    c->session = silt_session_choice_session(c, &m->choice, m->request.cwd, &e);
    if (c->session == NULL)
        silt_command_refuse_failed(
            c->request, m, m->foreground ? SILT_API_COMMAND_FAILED : SILT_API_STREAM_START, &e);
    return c->session != NULL;
}

void silt_command_context(struct silt_buf *b, const struct silt_command *m, silt_slice text)
{
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("command"));
    silt_json_string(b, m->request.command);
    silt_json_key(b, SILT_LIT("stderr"));
    silt_json_string(b, text);
}

void silt_command_cause(struct silt_buf *b, const struct silt_sandbox *s,
                        const struct silt_agent_end *end)
{
    if (end->flags & SILT_END_OOM) {
        silt_json_add_text(b, "cause", "oom");
        silt_json_key(b, SILT_LIT("limitBytes"));
        silt_json_u64(b, s->row.limits.memory_bytes);
        silt_json_key(b, SILT_LIT("peakBytes"));
        silt_json_u64(b, end->peak_bytes);
    } else if (end->flags & SILT_END_TIMEOUT) {
        silt_json_add_text(b, "cause", "timeout");
    } else if (end->flags & SILT_END_PIDS) {
        silt_json_add_text(b, "cause", "pids");
        silt_json_key(b, SILT_LIT("limit"));
        silt_json_u64(b, s->row.limits.pids);
    } else if (end->flags & SILT_END_TCP) {
        silt_json_add_text(b, "cause", "tcp_memory");
        silt_json_add_u64(b, "limitBytes", s->row.death.limit_bytes);
        silt_json_add_u64(b, "peakBytes", s->row.death.peak_bytes);
    } else if (end->signal != 0) {
        silt_json_add_text(b, "cause", "signal");
        silt_json_key(b, SILT_LIT("signal"));
        silt_json_i64(b, end->signal);
    } else if (end->flags & SILT_END_SHELL) {
        silt_json_add_text(b, "cause", "exit");
    }
}

void silt_command_notice(struct silt_buf *b, struct silt_sandbox *s, const struct silt_command *m)
{
    struct silt_session *session = m->choice.plain ? NULL : silt_session_find(s, m->choice.name);
    if (session == NULL || !silt_session_take_restart(session))
        return;
    silt_json_key(b, SILT_LIT("notice"));
    silt_json_open(b, '{');
    silt_json_add_text(b, "code", "SESSION_RESTARTED");
    silt_json_add_text(b, "cause", s->row.death.cause);
    silt_json_add_text(b, "message",
                       "The sandbox ended unexpectedly and was started again: files and this "
                       "session's directory and exported variables are kept; its other variables "
                       "and its functions are gone");
    silt_json_key(b, SILT_LIT("at"));
    silt_api_time(b, s->row.death.at_ms);
    silt_json_close(b, '}');
}

void silt_command_refuse_shell(struct silt_http_request *r, const struct silt_command *m,
                               const struct silt_sandbox *s, const struct silt_agent_end *end)
{
    silt_auto_buf b;
    silt_buf_init(&b, 8192);
    silt_json_open(&b, '{');
    silt_json_key(&b, SILT_LIT("sessionId"));
    silt_json_string(&b, m->choice.name);
    silt_json_key(&b, SILT_LIT("exitCode"));
    if (end->code >= 0)
        silt_json_i64(&b, end->code);
    else
        silt_json_null(&b);
    silt_command_cause(&b, s, end);
    silt_json_close(&b, '}');
    silt_api_refuse(r, SILT_API_SESSION_TERMINATED, silt_buf_slice(&b),
                    "Session '%.*s' shell exited (exit code: %d)", (int)m->choice.name.len,
                    m->choice.name.data, end->code);
}

void silt_command_refuse_failed(struct silt_http_request *r, const struct silt_command *m,
                                enum silt_api_code code, const struct silt_error *e)
{
    silt_auto_buf b;
    silt_buf_init(&b, (size_t)SILT_COMMAND_MAX * 7);
    silt_command_context(&b, m, silt_slice_of(e->text));
    if (e->code == SILT_GONE) {
        silt_json_key(&b, SILT_LIT("sessionId"));
        silt_json_string(&b, m->choice.name);
        silt_json_key(&b, SILT_LIT("exitCode"));
        silt_json_null(&b);
        silt_json_add_text(&b, "cause",
                           strstr(e->text, "destroyed") != NULL ? "destroyed" : "crash");
        code = strstr(e->text, "destroyed") != NULL ? SILT_API_SESSION_DESTROYED
                                                    : SILT_API_SANDBOX_ENDED;
    } else if (e->code == SILT_LIMIT || e->code == SILT_NO_SPACE || e->code == SILT_INTERRUPTED) {
        code = silt_api_code_of(e);
    }
    silt_json_close(&b, '}');
    silt_api_refuse(r, code, silt_buf_slice(&b), "Failed to execute command: %s", e->text);
}
