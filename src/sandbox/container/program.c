/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container/internal.h"
#include "sandbox/container/volume.h"
#include "base/clock.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/core/recovery.h"
#include "sandbox/core/sandbox.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

/* Id of the process: clients cannot choose it, and no list shows it. */
#define PROGRAM_ID "/program"

enum { FAREWELL_MS = 70 }; /* the official control server takes 50 to 100 ms to end */

/* Signals */

static bool is_deadly(int signal)
{
    return signal != SIGCHLD && signal != SIGCONT && signal != SIGURG && signal != SIGWINCH
           && signal != SIGSTOP && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU;
}

/* When the npm client has started or found a container, it sets an alarm for one second later and
 * begins to wait for its end. Only after that alarm does an end reach its hooks at once; an earlier
 * one is handled within the next call, which then fails over RPC. */
static int64_t farewell_ms(const struct silt_container *c, bool told)
{
    if (c->waited_ms == 0)
        return told ? FAREWELL_MS : 0;
    int64_t left_ms = c->waited_ms + c->all->stop_after_ms - silt_clock_ms();
    return left_ms > FAREWELL_MS ? left_ms : FAREWELL_MS;
}

/* It ends when `stop` fires. */
static bool is_leaving(const struct silt_container *c)
{
    return c->state == SILT_CONTAINER_IS_LEAVING || c->state == SILT_CONTAINER_IS_FAILED;
}

/* siltd's own control server has no process: it ends like the official one and forwards the same
 * signals. It serves until it ends. */
static void signal_builtin(struct silt_container *c, int signal)
{
    bool polite = signal == SIGTERM || signal == SIGINT;
    bool told = polite && c->process != NULL && c->process->exec != NULL;
    if (told)
        silt_exec_signal(c->process->exec, signal);
    if (!is_deadly(signal) || c->state == SILT_CONTAINER_IS_LEAVING)
        return;
    if (c->state == SILT_CONTAINER_IS_RUNNING)
        silt_container_enter(c, SILT_CONTAINER_IS_LEAVING);
    c->leave_code = polite ? 0 : 128 + signal;
    int64_t ms = farewell_ms(c, told);
    if (ms > 0)
        silt_loop_after(silt_container_loop(c), &c->stop, ms);
    else
        silt_container_end(c, c->leave_code);
}

int silt_container_kill(struct silt_container *c, int signal, struct silt_error *e)
{
    if (!silt_container_is_up(c))
        return silt_fail(e, SILT_CONFLICT, "Container %s is not running", c->row.id);
    if (c->builtin || c->process == NULL)
        signal_builtin(c, signal);
    else if (signal == SIGKILL)
        silt_container_end(c, SILT_CONTAINER_KILLED_CODE);
    else if (c->process->exec != NULL)
        silt_exec_signal(c->process->exec, signal);
    return 0;
}

void silt_container_on_stop(struct silt_timer *t)
{
    struct silt_container *c = silt_outer(t, struct silt_container, stop);
    if (c->state == SILT_CONTAINER_IS_STARTING)
        silt_container_was_not_answered(c);
    else
        silt_container_end(c, is_leaving(c) ? c->leave_code : SILT_CONTAINER_KILLED_CODE);
}

int silt_container_stop(struct silt_container *c, uint32_t after_s, struct silt_error *e)
{
    if (silt_container_kill(c, SIGTERM, e) < 0)
        return -1;
    if (c->state == SILT_CONTAINER_IS_RUNNING)
        silt_loop_after(silt_container_loop(c), &c->stop, (int64_t)after_s * 1000);
    return 0;
}

/* Its sandbox */

/* For `silt ls`: the container's name, and the class and object of its Worker. */
static void write_labels(const struct silt_container *c, struct silt_buf *b)
{
    silt_slice name = silt_slice_of(c->row.name), class = silt_container_class(c);
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("silt.container"));
    silt_json_string(b, name);
    if (class.data != NULL) {
        silt_json_key(b, SILT_LIT("silt.class"));
        silt_json_string(b, class);
        silt_json_key(b, SILT_LIT("silt.object"));
        silt_json_string(b, (silt_slice){name.data + name.len - 64, 64});
    }
    silt_json_close(b, '}');
}

static void give_env(struct silt_sandbox *s, silt_slice env)
{
    free(s->row.env);
    s->row.env = env.len > 0 ? malloc(env.len) : NULL;
    if (env.len > 0 && s->row.env == NULL)
        abort();
    if (env.len > 0)
        memcpy(s->row.env, env.data, env.len);
    s->row.env_len = env.len;
    silt_recovery_on_sandbox(s);
}

/* Once it has run, the files are its own. Before it has any, its image's name may have moved. */
bool silt_container_is_of_another_image(struct silt_container *c, const struct silt_sandbox *s)
{
    struct silt_container_image image;
    struct silt_error e;
    if (c->row.started_ms > 0 || memcmp(s->row.digest, c->row.digest, SILT_DIGEST_SIZE) == 0)
        return false;
    return silt_container_image(c->all->registry, c->spec.image, &image, &e) < 0
           || memcmp(s->row.digest, image.digest, SILT_DIGEST_SIZE) != 0;
}

/* The name moved before there were files: it may move again afterwards. */
static void follow_image(struct silt_container *c, const struct silt_container_image *image)
{
    if (memcmp(c->row.digest, image->digest, SILT_DIGEST_SIZE) == 0)
        return;
    memcpy(c->row.digest, image->digest, SILT_DIGEST_SIZE);
    silt_container_save(c);
}

/* Kept files are of the same image, but the limits allowed by the operator may have changed. */
static void give_limits(const struct silt_container *c, struct silt_sandbox *s)
{
    struct silt_container_image image;
    struct silt_sandbox_options o = {0};
    struct silt_error ignored;
    if (s->state != SILT_SANDBOX_STOPPED
        || silt_container_image(c->all->registry, c->spec.image, &image, &ignored) < 0
        || silt_container_size(c->all->registry, &image, &o, &ignored) < 0)
        return;
    s->row.limits = o.limits;
    memcpy(s->row.type, o.type, sizeof(s->row.type));
}

int silt_container_use(struct silt_container *c, struct silt_waiter *w, struct silt_error *e)
{
    struct silt_registry *r = c->all->registry;
    struct silt_sandbox *s = silt_container_sandbox(c);
    silt_list_init(&w->link);
    if (s != NULL && s->state != SILT_SANDBOX_DESTROYING) {
        if (c->state <= SILT_CONTAINER_IS_STARTING && silt_container_is_of_another_image(c, s))
            return silt_fail(
                e, SILT_CONFLICT,
                "files of an earlier container, of another image, could not be removed");
        if (c->state <= SILT_CONTAINER_IS_STARTING) {
            give_limits(c, s);
            give_env(s, c->spec.env);
            silt_container_give_network(c, s);
        }
        silt_sandbox_wait(s, w);
        return 0;
    }
    struct silt_container_image image;
    silt_auto_buf labels;
    silt_buf_init(&labels, 4096);
    if (silt_container_image(r, c->spec.image, &image, e) < 0)
        return -1;
    follow_image(c, &image);
    write_labels(c, &labels);
    struct silt_sandbox_options o = {
        .image = silt_slice_of(image.name), .env = c->spec.env, .labels = silt_buf_slice(&labels)};
    if (silt_container_size(r, &image, &o, e) < 0)
        return -1;
    silt_container_choose_network(c, &o);
    return silt_registry_create(r, silt_slice_of(c->sandbox), &o, w, e);
}

/* The program */

void silt_container_be_running(struct silt_container *c)
{
    silt_container_enter(c, SILT_CONTAINER_IS_RUNNING);
    silt_container_tell_start(c);
}

void silt_container_tell_start(struct silt_container *c)
{
    c->unwatched = false;
    c->row.status = SILT_CONTAINER_RUNNING;
    c->row.started_ms = silt_clock_wall_ms();
    c->running_ms = silt_clock_ms();
    silt_container_save(c);
    silt_container_tell_asks(&c->starters, NULL);
}

/* Output */

struct silt_process *silt_container_output(const struct silt_container *c)
{
    return silt_container_runs(c) && c->process != NULL ? c->process : c->said;
}

void silt_container_forget_output(struct silt_container *c)
{
    struct silt_process *p = c->said;
    c->said = NULL;
    if (p != NULL)
        silt_process_release(p);
}

void silt_container_keep_output(struct silt_container *c, struct silt_process *p)
{
    silt_container_forget_output(c);
    silt_process_hold(p);
    c->said = p;
}

/* The child of a control server: exit code 0 does not end the container while clients can reach
 * that server. */
static void on_program_ended(struct silt_container *c, struct silt_process *p)
{
    int32_t code = p->row.exit_code >= 0 ? p->row.exit_code : SILT_CONTAINER_KILLED_CODE;
    c->process = NULL;
    bool serves_on = c->builtin && code == 0 && c->spec.sidecar.len > 0;
    if (serves_on && !is_leaving(c))
        return;
    silt_container_keep_output(c, p);
    if (is_leaving(c))
        return; /* it ends when its time is up */
    if (!silt_container_hear_last_words(c, p, code))
        silt_container_end(c, code);
}

/* In the words from which Docker derives its exit code. */
static void could_not_run(struct silt_container *c, const struct silt_error *e)
{
    struct silt_error told = *e;
    if (e->code == SILT_NOT_FOUND || e->code == SILT_DENIED)
        (void)silt_fail(&told, e->code, "%.400s: %s", e->text,
                        e->code == SILT_NOT_FOUND ? "no such file or directory"
                                                  : "permission denied");
    silt_container_note_failure(c, &told);
    silt_process_unwatch(&c->watch);
    c->process = NULL;
    if (!silt_container_tell_failure(c, SILT_CONTAINER_NOT_FOUND_CODE))
        silt_container_could_not_start(c, &told);
}

static void on_program(struct silt_process_watch *w, struct silt_process *p,
                       enum silt_process_event what, const struct silt_error *e)
{
    struct silt_container *c = silt_outer(w, struct silt_container, watch);
    switch (what) {
    case SILT_PROCESS_STARTED:
        silt_container_watch(c);
        silt_container_be_running(c);
        return;
    case SILT_PROCESS_NOT_STARTED:
        could_not_run(c, e);
        return;
    case SILT_PROCESS_NO_SHELL:
    case SILT_PROCESS_ENDED:
        on_program_ended(c, p);
        return;
    }
}

void silt_container_watch(struct silt_container *c)
{
    c->watch.on_event = on_program;
    silt_process_watch(c->process, &c->watch);
}

struct silt_process *silt_container_program(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (strcmp(p->row.id, PROGRAM_ID) == 0 && !silt_process_is_over(p))
            return p;
    }
    return NULL;
}

static void add_words(struct silt_buf *b, const struct silt_words *w)
{
    for (size_t i = 0; i < w->count; i++) {
        silt_buf_add(b, w->items[i]);
        silt_buf_add_byte(b, 0);
    }
}

/* As in Docker: an entrypoint of the container's own replaces the image's arguments, too. */
static void write_argv(const struct silt_container *c, const struct silt_container_image *image,
                       struct silt_buf *b)
{
    const struct silt_container_spec *spec = &c->spec;
    bool own = spec->entrypoint.given && spec->entrypoint.count > 0;
    add_words(b, own ? &spec->entrypoint : &image->entrypoint);
    if (spec->cmd.given && spec->cmd.count > 0)
        add_words(b, &spec->cmd);
    else if (!own)
        add_words(b, &image->cmd);
}

static int run_program(struct silt_container *c, struct silt_sandbox *s, struct silt_error *e)
{
    struct silt_container_image image;
    silt_auto_buf argv, env;
    silt_buf_init(&argv, SILT_COMMAND_MAX);
    silt_buf_init(&env, 4096);
    if (silt_container_image(c->all->registry, c->spec.image, &image, e) < 0)
        return -1;
    write_argv(c, &image, &argv);
    if (argv.len == 0 && c->builtin) {
        silt_container_be_running(c);
        return 0;
    }
    if (argv.len == 0)
        return silt_fail(e, SILT_INVALID,
                         "No command specified: neither the image nor the request has one");
    silt_buf_addf(&env, "HOSTNAME=%.12s", c->row.id);
    silt_buf_add_byte(&env, 0);
    if (c->builtin)
        silt_buf_add(&env, SILT_LIT("SANDBOX_STARTED=true\0"));
    struct silt_process_request q = {
        .exec = {.mode = SILT_EXEC_PLAIN,
                 .command = silt_buf_slice(&argv),
                 .env = silt_buf_slice(&env),
                 .cwd = c->spec.workdir.len > 0 ? c->spec.workdir : image.workdir,
                 .user = c->spec.user.len > 0 ? c->spec.user : image.user,
                 .flags = SILT_START_ARGV | SILT_START_FIRST},
        .id = SILT_LIT(PROGRAM_ID)};
    c->watch.on_event = on_program;
    return silt_process_start(s, NULL, &q, &c->watch, &c->process, e);
}

static struct silt_sandbox *running_sandbox(struct silt_container *c, struct silt_error *e)
{
    struct silt_sandbox *s = silt_container_sandbox(c);
    if (s != NULL && s->state == SILT_SANDBOX_RUNNING)
        return s;
    (void)silt_fail(e, SILT_GONE, "its sandbox has ended");
    return NULL;
}

static void on_trusted(struct silt_container *c, const struct silt_error *e)
{
    struct silt_error own;
    struct silt_sandbox *s = e == NULL ? running_sandbox(c, &own) : NULL;
    if (s == NULL || run_program(c, s, &own) < 0)
        silt_container_could_not_start(c, e != NULL ? e : &own);
}

static void on_mounted(struct silt_container *c, const struct silt_error *e)
{
    struct silt_error own;
    struct silt_sandbox *s = e == NULL ? running_sandbox(c, &own) : NULL;
    if (s == NULL || silt_container_trust(c, s, on_trusted, &own) < 0)
        silt_container_could_not_start(c, e != NULL ? e : &own);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_outer(w, struct silt_container, waiter);
    if (s == NULL)
        silt_container_could_not_start(c, e);
    else if (c->spec.mount_count > 0)
        silt_container_mount(c, s, on_mounted);
    else
        on_mounted(c, NULL);
}

static void on_copied(struct silt_container *c, const struct silt_error *e)
{
    if (e != NULL)
        silt_log(SILT_LOG_WARN, "container.copy", "container=%.12s error=\"%s\"", c->row.id,
                 e->text);
    silt_container_end(c, e != NULL);
}

void silt_container_start(struct silt_container *c, struct silt_container_ask *a)
{
    struct silt_error e;
    silt_list_init(&a->link);
    silt_list_append(&c->starters, &a->link);
    if (c->state == SILT_CONTAINER_IS_STARTING)
        return;
    assert(c->state == SILT_CONTAINER_IS_CREATED || c->state == SILT_CONTAINER_IS_EXITED);
    c->waited_ms = 0;
    silt_container_enter(c, SILT_CONTAINER_IS_STARTING);
    silt_container_forget_output(c);
    silt_container_forget_last_words(c);
    c->asked = c->refused = false;
    switch (c->spec.kind) {
    case SILT_CONTAINER_SIDECAR:
        silt_container_start_sidecar(c);
        return;
    case SILT_CONTAINER_COPY:
        silt_container_be_running(c);
        silt_container_copy(c, on_copied);
        return;
    case SILT_CONTAINER_APP:
        c->waiter.on_ready = on_ready;
        if (silt_container_use(c, &c->waiter, &e) < 0)
            silt_container_could_not_start(c, &e);
        return;
    }
}
