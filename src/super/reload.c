/* SPDX-License-Identifier: Apache-2.0 */
#include "super/reload.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/test_switch.h"
#include "super/handover.h"
#include "super/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { CHECK_MS = 20000 };

extern char **environ;

/* Borrows everything but the settings. */
static struct silt_handover everything(const struct silt_super *s)
{
    const struct silt_super_birth *b = s->birth;
    struct silt_handover h = {.listen = b->listen,
                              .preview = b->preview,
                              .engine = b->engine,
                              .gate = b->gate->ns,
                              .gate_log = b->gate->log,
                              .gate_socket_count = (uint32_t)b->gate->nsockets,
                              .locks = *b->locks,
                              .keep = s->keep,
                              .settings = silt_config_fixed(b->config)};
    memcpy(h.gate_sockets, b->gate->sockets, sizeof(h.gate_sockets));
    return h;
}

static int seal(const struct silt_handover *h, bool damage, int *ret_fd, struct silt_error *e)
{
    silt_auto_buf table;
    silt_buf_init(&table, SILT_HANDOVER_MAX);
    silt_handover_write(h, &table);
    if (table.broken)
        return silt_fail(e, SILT_LIMIT, "a handover of more than %d bytes", SILT_HANDOVER_MAX);
    if (damage)
        table.data[table.len / 2] ^= 1;
    return silt_fd_seal(silt_buf_slice(&table), ret_fd, e);
}

/* The check. */

static int start_check(struct silt_super *s, struct silt_error *e)
{
    struct silt_handover h = everything(s);
    silt_auto_fd table = -1;
    int sealed = seal(&h, false, &table, e);
    silt_config_args_free(h.settings);
    if (sealed < 0)
        return -1;
    struct silt_exec_helper_order order = {
        .program = SILT_PROGRAM_CHECK, .fds = {table}, .count = 1};
    return silt_exec_helper_start(s->birth->starter, &order, &s->check, e);
}

static void fail(struct silt_super *s, const char *error)
{
    silt_reload_tell(s->birth->config, error);
    s->reloading = false;
}

static void on_check_late(struct silt_timer *t)
{
    struct silt_super *s = silt_outer(t, struct silt_super, check_late);
    (void)kill(s->check, SIGKILL);
}

static void begin(struct silt_super *s)
{
    struct silt_error e;
    s->reload_asked = false;
    s->reloading = true;
    silt_log(SILT_LOG_INFO, "reload.begin", "sandboxes=%u", s->keep.count);
    if (start_check(s, &e) < 0) {
        fail(s, e.text);
        return;
    }
    s->check_late.on_time = on_check_late;
    silt_loop_after(&s->loop, &s->check_late, CHECK_MS);
}

/* One that never served ends by itself if it cannot start. One that was reloaded may need the next
 * version in order to start at all. */
static bool may_begin(const struct silt_super *s)
{
    return s->check == 0
           && (s->state == SILT_INSTANCE_SERVING
               || (s->state == SILT_INSTANCE_STARTING && s->resumed));
}

void silt_reload_ask(struct silt_super *s)
{
    s->reload_asked = true;
    if (may_begin(s))
        begin(s);
}

void silt_reload_on_serving(struct silt_super *s)
{
    if (s->reloading && s->check == 0) {
        silt_reload_tell(s->birth->config, NULL);
        s->reloading = false;
    }
    if (s->reload_asked && may_begin(s))
        begin(s);
}

bool silt_reload_on_exit(struct silt_super *s, pid_t pid, int status)
{
    char error[160];
    if (pid != s->check || pid == 0)
        return false;
    s->check = 0;
    silt_loop_cancel(&s->loop, &s->check_late);
    if (status == 0) { /* else the instance is ending anyway */
        if (s->state <= SILT_INSTANCE_SERVING)
            silt_super_hand_over(s);
        return true;
    }
    (void)snprintf(error, sizeof(error),
                   "the new silt-super refused (status %d, signal %d); everything runs on, its "
                   "reason is in the log",
                   WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fail(s, error);
    if (s->reload_asked && may_begin(s))
        begin(s);
    return true;
}

/* The exec. */

/* Blocked, so they wait for the new program. */
static void pass_signals_on(const struct silt_super *s)
{
    if (s->stop_asked)
        (void)kill(getpid(), SIGTERM);
    if (s->reload_asked)
        (void)kill(getpid(), SIGUSR2);
}

static int exec(struct silt_super *s, struct silt_handover *h, struct silt_error *e)
{
    const char *path =
        silt_without("reload_exec") ? "/nonexistent/silt-super" : s->birth->starter->super_path;
    silt_auto_fd table = -1;
    if (seal(h, silt_without("reload_table"), &table, e) < 0)
        return -1;
    if (fcntl(table, F_SETFD, 0) < 0)
        return silt_fail_errno(e, "keep the handover");
    if (silt_handover_mark(h, 0, e) < 0)
        return -1;
    char **args = silt_exec_helper_super_args(s->birth->starter, table, false);
    silt_log(SILT_LOG_INFO, "reload.exec", "path=%s", path);
    silt_log_flush();
    (void)execve(path, args, environ);
    (void)silt_fail_errno(e, "execute %s", path);
    silt_config_args_free(args);
    return -1;
}

void silt_reload_exec(struct silt_super *s)
{
    struct silt_handover h = everything(s);
    struct silt_error e, ignored;
    pass_signals_on(s);
    (void)exec(s, &h, &e);
    (void)silt_handover_mark(&h, FD_CLOEXEC, &ignored);
    silt_config_args_free(h.settings);
    s->stop_asked = s->reload_asked = false; /* the signals will come again */
    fail(s, e.text);
}
