/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec/background.h"
#include "agent/shell/state.h"
#include "base/clock.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAVE_MS = 5000 }; /* limit for a shell to write its state */

void silt_background_fail(struct silt_session *s, enum silt_code code, const char *why)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    s->exec = NULL;
    silt_session_enter(s, SILT_SESSION_IDLE);
    silt_loop_cancel(&s->agent->loop, &s->timer);
    (void)silt_fail(&e, code, "%s", why);
    silt_exec_fail(x, &e);
}

static void on_late(struct silt_timer *t)
{
    struct silt_session *s = silt_outer(t, struct silt_session, timer);
    if (silt_session_wake(s))
        silt_loop_after(&s->agent->loop, t, SAVE_MS);
    else
        silt_background_fail(s, SILT_TIMEOUT, "the session's shell does not answer");
}

/* A command with a user of its own gets more into its copy of the state. */
static bool can_share(const struct silt_exec *x)
{
    return x->start.user.len == 0;
}

/* A shell whose state is kept ignores no signals: traps would show those. Only its directory can
 * differ from the state. */
static bool is_ordinary(const struct silt_session *s)
{
    char name[32];
    char path[PATH_MAX];
    (void)snprintf(name, sizeof(name), "/proc/%d/cwd", (int)s->shell.child.pid);
    ssize_t n = s->kept >= 0 && s->cwd != NULL ? readlink(name, path, sizeof(path)) : -1;
    return n > 0 && silt_slice_eq((silt_slice){path, (size_t)n}, silt_slice_of(s->cwd));
}

static bool run_with_kept(struct silt_session *s, struct silt_exec *x)
{
    int fd = s->kept >= 0 && can_share(x) ? fcntl(s->kept, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return false;
    x->ordinary = is_ordinary(s);
    x->state_age_s = silt_clock_wall_ms() / 1000 - s->kept_ms / 1000;
    silt_run_with_state(x, fd, s->shell.child.pid);
    return true;
}

void silt_background_start(struct silt_session *s, struct silt_exec *x)
{
    struct silt_error e;
    memcpy(x->as, s->user, sizeof(x->as));
    if (run_with_kept(s, x))
        return;
    if (silt_session_place_state(s, &e) < 0) {
        silt_exec_fail(x, &e);
        return;
    }
    struct silt_shell sh = silt_session_next_shell(s);
    struct silt_script *lines = silt_shell_inputs_script(&s->gates);
    silt_shell_save(lines, &sh);
    silt_session_enter(s, SILT_SESSION_SAVING);
    s->exec = x;
    s->timer.on_time = on_late;
    silt_loop_after(&s->agent->loop, &s->timer, SAVE_MS);
    if (silt_session_send(s, lines, &e) < 0)
        silt_background_fail(s, e.code, e.text);
}

/* A waiting shell does not change, unless a trap runs in it. */
static void keep(struct silt_session *s, const struct silt_exec *x, const struct silt_answer *a,
                 int fd)
{
    bool small = silt_state_trim(fd);
    silt_close_fd(&s->kept);
    if (small && a->alone && !s->text_lost && can_share(x))
        s->kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    s->kept_ms = silt_clock_wall_ms();
    free(s->cwd);
    s->cwd = a->cwd.len > 0 ? strndup(a->cwd.data, a->cwd.len) : NULL;
}

void silt_background_answer(struct silt_session *s, const struct silt_answer *a)
{
    struct silt_exec *x = s->exec;
    struct silt_error e;
    char name[SILT_DEV_SILT_NAME_SIZE];
    int fd;
    silt_shell_name(s->slot, SILT_SHELL_STATE, name);
    if (!silt_dev_silt_ends_with(s->agent->directory, name, SILT_LIT(SILT_STATE_WHOLE "\n"))) {
        silt_session_remove_file(s, SILT_SHELL_STATE);
        (void)silt_state_install(s->agent->directory,
                                 &e); /* the guest may have emptied the directory */
        silt_background_fail(s, SILT_NO_SPACE, "the session's state could not be written");
        return;
    }
    if (silt_dev_silt_collect(s->agent->directory, name, &fd, &e) < 0) {
        silt_background_fail(s, e.code, e.text);
        return;
    }
    silt_loop_cancel(&s->agent->loop, &s->timer);
    keep(s, x, a, fd);
    x->ordinary = is_ordinary(s);
    s->exec = NULL;
    silt_session_enter(s, SILT_SESSION_IDLE);
    silt_run_with_state(x, fd, s->shell.child.pid);
}
