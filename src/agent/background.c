/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/background.h"
#include "agent/state.h"

enum { SAVE_MS = 5000 }; /* for a shell to write its state */

void silt_background_fail(struct silt_session *s, enum silt_code code, const char *why)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    s->exec = NULL;
    s->state = SILT_SESSION_IDLE;
    silt_loop_cancel(&s->agent->loop, &s->timer);
    (void)silt_fail(&e, code, "%s", why);
    silt_exec_fail(x, &e);
}

static void on_late(struct silt_timer *t)
{
    struct silt_session *s = silt_container_of(t, struct silt_session, timer);
    if (silt_session_wake(s))
        silt_loop_after(&s->agent->loop, t, SAVE_MS);
    else
        silt_background_fail(s, SILT_TIMEOUT, "the session's shell does not answer");
}

void silt_background_start(struct silt_session *s, struct silt_exec *x)
{
    struct silt_error e;
    struct silt_shell sh = silt_session_next_shell(s);
    struct silt_script *lines = silt_gates_script(&s->gates);
    silt_shell_save(lines, &sh);
    s->state = SILT_SESSION_SAVING;
    s->exec = x;
    s->timer.on_time = on_late;
    silt_loop_after(&s->agent->loop, &s->timer, SAVE_MS);
    if (silt_session_send(s, lines, &e) < 0)
        silt_background_fail(s, e.code, e.text);
}

void silt_background_answer(struct silt_session *s)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    char name[SILT_FOLDER_NAME_SIZE];
    int fd;
    silt_shell_name(s->slot, SILT_SHELL_STATE, name);
    if (!silt_folder_ends_with(s->agent->folder, name, SILT_LIT(SILT_STATE_WHOLE "\n"))) {
        silt_session_remove_file(s, SILT_SHELL_STATE);
        (void)silt_state_install(s->agent->folder, &e); /* the guest may have emptied the folder */
        silt_background_fail(s, SILT_NO_SPACE, "the session's state could not be written");
        return;
    }
    if (silt_folder_collect(s->agent->folder, name, &fd, &e) < 0) {
        silt_background_fail(s, e.code, e.text);
        return;
    }
    silt_loop_cancel(&s->agent->loop, &s->timer);
    s->exec = NULL;
    s->state = SILT_SESSION_IDLE;
    silt_run_with_state(x, fd, s->shell.child.pid);
}
