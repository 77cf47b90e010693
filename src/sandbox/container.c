/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/container.h"
#include "sandbox/container_own.h"
#include "sandbox/container_volume.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "json/json.h"
#include "sandbox/diag.h"
#include "sandbox/entrance.h"
#include "sandbox/sandbox.h"

#include <assert.h>
#include <openssl/sha.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    ARENA_MAX = 8 << 20,
    UPKEEP_MS = 5000,
    UNHEARD_MAX = 2, /* looks in a row that found nobody: workerd is dead */
    KILLED = 128 + SIGKILL,
    NOT_FOUND = 127,
    SANDBOX_HEX = 40,
    LISTEN_MS = 10000, /* for silt-super, which does nothing else */
};

#define PROGRAM_ID "/program" /* of the process: nobody can choose it, and no list shows it */

static void finish(struct silt_container *c);
static void could_not_start(struct silt_container *c, const struct silt_error *e);
static void remove_now(struct silt_container *c);

static void enter(struct silt_container *c, enum silt_container_state next) /* the only place that assigns it */
{
    c->state = next;
}

const char *silt_container_status(const struct silt_container *c)
{
    switch (c->state) {
    case SILT_CONTAINER_IS_CREATED:
    case SILT_CONTAINER_IS_STARTING:
        return "created";
    case SILT_CONTAINER_IS_RUNNING:
    case SILT_CONTAINER_IS_ENDING:
        return "running";
    case SILT_CONTAINER_IS_EXITED:
        return "exited";
    case SILT_CONTAINER_IS_REMOVING:
        return "removing";
    }
    return "dead";
}

static void save(struct silt_container *c)
{
    struct silt_error e;
    if (silt_store_put_container(c->all->registry->store, &c->row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.put", "container=%s error=%s", c->row.id, e.text);
}

static struct silt_loop *loop_of(const struct silt_container *c)
{
    return c->all->registry->loop;
}

/* silt-super keeps the connection of who waits under a number of its own. */
static const uint64_t WAITS = 1ULL << 63;

static void tell_unlisten(struct silt_containers *all, uint64_t number)
{
    struct silt_super_note note = {.type = SILT_SUPER_UNLISTEN, .number = number};
    silt_registry_tell_super(all->registry, &note);
}

/* Lookups */

static struct silt_container *find_prefix(struct silt_containers *all, silt_slice prefix)
{
    struct silt_container *found = NULL;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (!silt_slice_starts(silt_slice_of(c->row.id), prefix))
            continue;
        if (found != NULL)
            return NULL;
        found = c;
    }
    return found;
}

struct silt_container *silt_container_find(struct silt_containers *all, silt_slice name)
{
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    struct silt_container *c = silt_map_find(&all->by_name, name);
    if (c == NULL)
        c = silt_map_find(&all->by_id, name);
    return c != NULL || name.len == 0 ? c : find_prefix(all, name);
}

/* As silt_container_find has it, without a walk over all of them for each that names another. */
static bool is_behind(const struct silt_container *c, const struct silt_container *sidecar)
{
    silt_slice name = c->spec.sidecar;
    if (name.len > 0 && name.data[0] == '/')
        name = (silt_slice){name.data + 1, name.len - 1};
    if (name.len == 0)
        return false;
    const struct silt_container *named = silt_map_find(&c->all->by_name, name);
    if (named != NULL)
        return named == sidecar;
    return silt_slice_starts(silt_slice_of(sidecar->row.id), name) && silt_container_find(c->all, name) == sidecar;
}

struct silt_container *silt_container_behind(struct silt_container *sidecar)
{
    silt_list_each(it, &sidecar->all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->state == SILT_CONTAINER_IS_RUNNING && is_behind(c, sidecar))
            return c;
    }
    return NULL;
}

static struct silt_sandbox *sandbox_of(struct silt_container *c)
{
    return c->spec.kind == SILT_CONTAINER_APP ? silt_registry_find(c->all->registry, silt_slice_of(c->sandbox)) : NULL;
}

static void name_sandbox(struct silt_container *c)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    (void)SHA256((const unsigned char *)c->row.name, strlen(c->row.name), hash);
    memcpy(c->sandbox, "w-", 3);
    for (size_t i = 0; i < SANDBOX_HEX / 2; i++)
        (void)snprintf(c->sandbox + 2 + i * 2, 3, "%02x", hash[i]);
}

/* The end */

static void free_container(struct silt_grave *g)
{
    struct silt_container *c = silt_container_of(g, struct silt_container, grave);
    silt_container_row_fini(&c->row);
    silt_arena_fini(&c->arena);
    free(c);
}

static void drop_kept(struct silt_container_wait *w)
{
    struct silt_container *c = w->container;
    if (c->kept != w)
        return;
    c->kept = NULL;
    tell_unlisten(c->all, WAITS | c->row.number);
}

static void tell_waits(struct silt_container *c, bool removed)
{
    struct silt_link all;
    silt_list_init(&all);
    silt_list_each(it, &c->waits)
    {
        if (!removed && silt_container_of(it, struct silt_container_wait, link)->removed)
            continue;
        silt_list_remove(it);
        silt_list_append(&all, it);
    }
    while (!silt_list_empty(&all)) {
        struct silt_container_wait *w = silt_list_first(&all, struct silt_container_wait, link);
        silt_list_remove(&w->link);
        drop_kept(w);
        w->on_done(w, c->row.exit_code);
    }
}

static void tell_asks(struct silt_link *asks, const struct silt_error *e)
{
    while (!silt_list_empty(asks)) {
        struct silt_container_ask *a = silt_list_first(asks, struct silt_container_ask, link);
        silt_list_remove(&a->link);
        a->on_done(a, e);
    }
}

static void on_delay(struct silt_timer *t)
{
    finish(silt_container_of(t, struct silt_container, delay));
}

/* Waiters are told before the state is seen: whoever asks after an answer finds it. */
static void finish(struct silt_container *c)
{
    tell_waits(c, false);
    enter(c, SILT_CONTAINER_IS_EXITED);
    silt_log(SILT_LOG_INFO, "container.exit", "container=%.12s sandbox=%s code=%d", c->row.id, c->sandbox, c->row.exit_code);
    if (c->doomed)
        remove_now(c);
}

static void report(struct silt_container *c)
{
    if (c->all->exit_delay_ms > 0 && c->spec.kind == SILT_CONTAINER_APP)
        silt_loop_after(loop_of(c), &c->delay, c->all->exit_delay_ms);
    else
        finish(c);
}

static void on_dropped(void *context)
{
    struct silt_container *c = context;
    if (--c->drops == 0)
        report(c);
}

/* Connections first, then who waits, then the state: engine clients rely on it. */
static void end(struct silt_container *c, int32_t code)
{
    struct silt_sandbox *s = sandbox_of(c);
    if (c->state == SILT_CONTAINER_IS_ENDING || c->state >= SILT_CONTAINER_IS_EXITED)
        return;
    enter(c, SILT_CONTAINER_IS_ENDING);
    silt_loop_cancel(loop_of(c), &c->stop);
    silt_container_unmount(c);
    silt_process_unwatch(&c->watch);
    silt_waiter_leave(&c->waiter);
    c->process = NULL;
    c->row.exit_code = code;
    c->row.status = c->condemned ? SILT_CONTAINER_GOING : SILT_CONTAINER_EXITED;
    c->row.ended_ms = silt_clock_wall_ms();
    save(c);
    c->drops = 1;
    if (c->all->hooks.cut != NULL)
        c->all->hooks.cut(c->all->hooks.context, c);
    if (s != NULL) {
        c->drops += silt_entrances_close_direct(s, on_dropped, c);
        silt_sandbox_stop(s, "exit", "the container has ended");
    }
    if (c->spec.kind == SILT_CONTAINER_SIDECAR && c->all->hooks.unlisten != NULL)
        c->all->hooks.unlisten(c->all->hooks.context, c);
    on_dropped(c);
}

static void could_not_start(struct silt_container *c, const struct silt_error *e)
{
    struct silt_sandbox *s = sandbox_of(c);
    silt_loop_cancel(loop_of(c), &c->stop);
    silt_process_unwatch(&c->watch);
    c->process = NULL;
    enter(c, SILT_CONTAINER_IS_EXITED);
    c->row.status = SILT_CONTAINER_EXITED;
    c->row.exit_code = NOT_FOUND;
    c->row.ended_ms = silt_clock_wall_ms();
    save(c);
    if (s != NULL)
        silt_sandbox_stop(s, "exit", "the container's program could not be started");
    tell_waits(c, false);
    tell_asks(&c->starters, e);
    if (c->doomed)
        remove_now(c);
}

void silt_container_on_sandbox_ended(struct silt_sandbox *s)
{
    struct silt_registry *r = s->registry;
    if (r->containers == NULL || s->row.id[0] != 'w')
        return;
    silt_list_each(it, &r->containers->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_APP && c->state == SILT_CONTAINER_IS_RUNNING
            && strcmp(c->sandbox, s->row.id) == 0)
            end(c, KILLED);
    }
}

/* Removal */

static void is_gone(struct silt_container *c)
{
    struct silt_containers *all = c->all;
    struct silt_error e;
    if (silt_store_remove_container(all->registry->store, c->row.id, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "container=%s error=%s", c->row.id, e.text);
    (void)silt_map_remove(&all->by_name, silt_slice_of(c->row.name));
    (void)silt_map_remove(&all->by_id, silt_slice_of(c->row.id));
    silt_list_remove(&c->link);
    all->count--;
    silt_loop_cancel(loop_of(c), &c->delay);
    silt_loop_cancel(loop_of(c), &c->stop);
    silt_loop_bury(loop_of(c), &c->grave);
    struct silt_error gone;
    (void)silt_fail(&gone, SILT_GONE, "the container was removed");
    tell_asks(&c->starters, &gone);
    tell_waits(c, true);
    tell_asks(&c->removers, NULL);
}

/* Were it gone, the next of its name would get the files: it stays, to be removed again. */
static void could_not_remove(struct silt_container *c, const struct silt_error *e)
{
    silt_log(SILT_LOG_ERROR, "container.remove", "container=%.12s sandbox=%s error=\"%s\"", c->row.id, c->sandbox, e->text);
    c->doomed = false;
    enter(c, SILT_CONTAINER_IS_EXITED);
    tell_asks(&c->removers, e);
}

static void on_destroyed(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_container_of(w, struct silt_container, waiter);
    (void)s;
    if (e != NULL)
        could_not_remove(c, e);
    else
        is_gone(c);
}

/* The files of one that had ended wait for the next of its name; those of one that ran go. */
static bool keeps_files(const struct silt_container *c)
{
    return c->all->keep_s > 0 && (c->row.started_ms > 0 || c->reused) && !c->condemned;
}

/* Written down before anything of it goes: a siltd that dies meanwhile leaves that to the next. */
static void condemn(struct silt_container *c)
{
    c->condemned = true;
    if (c->row.status == SILT_CONTAINER_GOING)
        return;
    c->row.status = SILT_CONTAINER_GOING;
    save(c);
}

/* One that never ran may have one all the same: of a siltd that died while it was started. */
static void shut_door(struct silt_container *c)
{
    if (c->listen < 0 || c->all->hooks.unlisten == NULL)
        return;
    c->all->hooks.cut(c->all->hooks.context, c);
    c->all->hooks.unlisten(c->all->hooks.context, c);
}

static void remove_now(struct silt_container *c)
{
    struct silt_sandbox *s = sandbox_of(c);
    enter(c, SILT_CONTAINER_IS_REMOVING);
    silt_waiter_leave(&c->waiter); /* files of an earlier one may be going */
    c->clearing = false;
    if (c->spec.kind == SILT_CONTAINER_SIDECAR) {
        shut_door(c);
        silt_container_forget_capture(c);
    }
    if (s == NULL || keeps_files(c)) {
        if (s != NULL)
            silt_sandbox_stop(s, "exit", "the container was removed");
        is_gone(c);
        return;
    }
    condemn(c);
    c->waiter.on_ready = on_destroyed;
    silt_sandbox_destroy(s, &c->waiter);
}

/* Before its end, which saves what it finds here. */
static void doom(struct silt_container *c, bool spared)
{
    c->doomed = true;
    c->condemned = !spared;
    if (spared)
        silt_log(SILT_LOG_INFO, "container.spared", "container=%.12s sandbox=%s", c->row.id, c->sandbox);
    else if (c->state == SILT_CONTAINER_IS_ENDING)
        condemn(c);
    end(c, KILLED);
}

void silt_container_condemn(struct silt_container *c)
{
    if (c->doomed && c->state == SILT_CONTAINER_IS_ENDING)
        condemn(c);
}

/* A workerd whose wait broke (silt-super had no room for it) takes its container for ended, and does not look. It removes what it believes to be a leftover: when its object goes,
 * or when the next start finds the name taken. One that knows better (its wait did not break, or it looked after its own restart) waits for the end. */
void silt_container_remove(struct silt_container *c, bool unsure, struct silt_container_ask *a)
{
    if (a != NULL) {
        silt_list_init(&a->link);
        silt_list_append(&c->removers, &a->link);
    }
    if (c->state == SILT_CONTAINER_IS_REMOVING || c->doomed)
        return;
    bool ran = c->state == SILT_CONTAINER_IS_STARTING || c->state == SILT_CONTAINER_IS_RUNNING;
    if (ran || c->state == SILT_CONTAINER_IS_ENDING) {
        doom(c, unsure && c->unwatched);
        return;
    }
    remove_now(c);
}

void silt_container_ask_leave(struct silt_container_ask *a)
{
    silt_list_remove(&a->link);
}

void silt_container_wait_leave(struct silt_container_wait *w)
{
    silt_list_remove(&w->link);
    drop_kept(w);
}

void silt_container_wait_keep(struct silt_container_wait *w, int connection)
{
    struct silt_container *c = w->container;
    struct silt_super_note note = {.type = SILT_SUPER_LISTEN, .number = WAITS | c->row.number};
    struct silt_parcel p = {.data = &note, .len = sizeof(note), .fds = {connection}, .nfds = 1};
    struct silt_error e;
    if (c->spec.kind != SILT_CONTAINER_APP || w->removed)
        return;
    if (connection < 0 || silt_fd_send(c->all->registry->super, &p, &e) == 0)
        c->kept = w;
    else
        silt_log(SILT_LOG_WARN, "super.tell", "container=%.12s error=%s", c->row.id, e.text);
}

static bool is_of_wait(struct silt_containers *all, uint64_t number, int *fd)
{
    if ((number & WAITS) == 0)
        return false;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->row.number == (number & ~WAITS) && c->spec.kind == SILT_CONTAINER_APP && all->hooks.waits != NULL && *fd >= 0) {
            all->hooks.waits(all->hooks.context, c, silt_take_fd(fd));
            if (c->kept != NULL)
                return true;
        }
    }
    tell_unlisten(all, number);
    return true;
}

bool silt_container_wait(struct silt_container *c, struct silt_container_wait *w, int32_t *ret_code)
{
    silt_list_init(&w->link);
    w->container = c;
    bool over = c->state == SILT_CONTAINER_IS_CREATED || c->state == SILT_CONTAINER_IS_EXITED;
    if (!w->removed && over) {
        *ret_code = c->row.exit_code;
        return true;
    }
    c->unwatched = c->unwatched && w->removed;
    silt_list_append(&c->waits, &w->link);
    return false;
}

/* Signals */

static bool is_deadly(int signal)
{
    return signal != SIGCHLD && signal != SIGCONT && signal != SIGURG && signal != SIGWINCH && signal != SIGSTOP
           && signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU;
}

/* Our own control server has no process: it ends as the official one does. */
static void signal_builtin(struct silt_container *c, int signal)
{
    if (is_deadly(signal))
        end(c, signal == SIGTERM || signal == SIGINT ? 0 : 128 + signal);
}

int silt_container_kill(struct silt_container *c, int signal, struct silt_error *e)
{
    if (c->state != SILT_CONTAINER_IS_RUNNING)
        return silt_fail(e, SILT_CONFLICT, "Container %s is not running", c->row.id);
    if (c->builtin || c->process == NULL)
        signal_builtin(c, signal);
    else if (signal == SIGKILL)
        end(c, KILLED);
    else if (c->process->exec != NULL)
        silt_exec_signal(c->process->exec, signal);
    return 0;
}

/* What silt-super makes all the same is refused when it comes. */
static void was_not_answered(struct silt_container *c)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket was made within %d ms", LISTEN_MS);
    tell_unlisten(c->all, c->row.number);
    could_not_start(c, &e);
}

static void on_stop(struct silt_timer *t)
{
    struct silt_container *c = silt_container_of(t, struct silt_container, stop);
    if (c->state == SILT_CONTAINER_IS_STARTING)
        was_not_answered(c);
    else
        end(c, KILLED);
}

int silt_container_stop(struct silt_container *c, uint32_t after_s, struct silt_error *e)
{
    if (silt_container_kill(c, SIGTERM, e) < 0)
        return -1;
    if (c->state == SILT_CONTAINER_IS_RUNNING)
        silt_loop_after(loop_of(c), &c->stop, (int64_t)after_s * 1000);
    return 0;
}

/* Its sandbox */

/* Shown by `silt ls`: the name, and what workerd made it of. */
static void write_labels(const struct silt_container *c, struct silt_buf *b)
{
    silt_slice name = silt_slice_of(c->row.name), prefix = SILT_LIT("workerd-");
    silt_json_open(b, '{');
    silt_json_key(b, SILT_LIT("silt.container"));
    silt_json_string(b, name);
    if (silt_slice_starts(name, prefix) && name.len > prefix.len + 65 && name.data[name.len - 65] == '-') {
        silt_json_key(b, SILT_LIT("silt.class"));
        silt_json_string(b, (silt_slice){name.data + prefix.len, name.len - prefix.len - 65});
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
}

/* Of one that ran the files are its own. An image's name may have moved on before there were any. */
static bool is_of_another_image(struct silt_container *c, const struct silt_sandbox *s)
{
    struct silt_container_image image;
    struct silt_error e;
    if (c->row.started_ms > 0 || memcmp(s->row.digest, c->row.digest, SILT_DIGEST_SIZE) == 0)
        return false;
    return silt_container_image(c->all->registry, c->spec.image, &image, &e) < 0
           || memcmp(s->row.digest, image.digest, SILT_DIGEST_SIZE) != 0;
}

/* Its name has moved on since, before there were files: it may do so again, after. */
static void follow_image(struct silt_container *c, const struct silt_container_image *image)
{
    if (memcmp(c->row.digest, image->digest, SILT_DIGEST_SIZE) == 0)
        return;
    memcpy(c->row.digest, image->digest, SILT_DIGEST_SIZE);
    save(c);
}

int silt_container_use(struct silt_container *c, struct silt_waiter *w, struct silt_error *e)
{
    struct silt_registry *r = c->all->registry;
    struct silt_sandbox *s = sandbox_of(c);
    silt_list_init(&w->link);
    if (s != NULL && s->state != SILT_SANDBOX_DESTROYING) {
        if (c->state <= SILT_CONTAINER_IS_STARTING && is_of_another_image(c, s))
            return silt_fail(e, SILT_CONFLICT, "files of an earlier container, of another image, could not be removed");
        if (c->state <= SILT_CONTAINER_IS_STARTING) {
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
    struct silt_sandbox_options o = {.image = silt_slice_of(image.name),
                                     .limits = r->default_limits,
                                     .env = c->spec.env,
                                     .labels = silt_buf_slice(&labels)};
    memcpy(o.type, r->settings.type, sizeof(o.type));
    silt_container_choose_network(c, &o);
    return silt_registry_create(r, silt_slice_of(c->sandbox), &o, w, e);
}

/* The program */

static void is_running(struct silt_container *c)
{
    enter(c, SILT_CONTAINER_IS_RUNNING);
    c->unwatched = false;
    c->row.status = SILT_CONTAINER_RUNNING;
    c->row.started_ms = silt_clock_wall_ms();
    save(c);
    tell_asks(&c->starters, NULL);
}

static void watch(struct silt_container *c);

/* The child of a control server: its success is no end. */
static void on_program_ended(struct silt_container *c, const struct silt_process *p)
{
    int32_t code = p->row.exit_code >= 0 ? p->row.exit_code : KILLED;
    c->process = NULL;
    if (!c->builtin || code != 0)
        end(c, code);
}

static void on_program(struct silt_process_watch *w, struct silt_process *p, enum silt_process_event what,
                       const struct silt_error *e)
{
    struct silt_container *c = silt_container_of(w, struct silt_container, watch);
    switch (what) {
    case SILT_PROCESS_STARTED:
        watch(c);
        is_running(c);
        return;
    case SILT_PROCESS_NOT_STARTED:
        could_not_start(c, e);
        return;
    case SILT_PROCESS_NO_SHELL:
    case SILT_PROCESS_ENDED:
        on_program_ended(c, p);
        return;
    }
}

static void watch(struct silt_container *c)
{
    c->watch.on_event = on_program;
    silt_process_watch(c->process, &c->watch);
}

static void add_words(struct silt_buf *b, const struct silt_words *w)
{
    for (size_t i = 0; i < w->count; i++) {
        silt_buf_add(b, w->items[i]);
        silt_buf_add_byte(b, 0);
    }
}

/* As Docker has it: an entrypoint of the container's own makes the image's arguments meaningless. */
static void write_argv(const struct silt_container *c, const struct silt_container_image *image, struct silt_buf *b)
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
        is_running(c);
        return 0;
    }
    if (argv.len == 0)
        return silt_fail(e, SILT_INVALID, "No command specified: neither the image nor the request has one");
    silt_buf_addf(&env, "HOSTNAME=%.12s", c->row.id);
    silt_buf_add_byte(&env, 0);
    if (c->builtin)
        silt_buf_add(&env, SILT_LIT("SANDBOX_STARTED=true\0"));
    struct silt_process_request q = {.exec = {.mode = SILT_EXEC_PLAIN,
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
    struct silt_sandbox *s = sandbox_of(c);
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
        could_not_start(c, e != NULL ? e : &own);
}

static void on_mounted(struct silt_container *c, const struct silt_error *e)
{
    struct silt_error own;
    struct silt_sandbox *s = e == NULL ? running_sandbox(c, &own) : NULL;
    if (s == NULL || silt_container_trust(c, s, on_trusted, &own) < 0)
        could_not_start(c, e != NULL ? e : &own);
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_container_of(w, struct silt_container, waiter);
    if (s == NULL)
        could_not_start(c, e);
    else if (c->spec.mount_count > 0)
        silt_container_mount(c, s, on_mounted);
    else
        on_mounted(c, NULL);
}

static void on_copied(struct silt_container *c, const struct silt_error *e)
{
    if (e != NULL)
        silt_log(SILT_LOG_WARN, "container.copy", "container=%.12s error=\"%s\"", c->row.id, e->text);
    end(c, e != NULL);
}

static void start_sidecar(struct silt_container *c)
{
    c->question += c->question == UINT32_MAX ? 2 : 1; /* 0 is nobody's */
    struct silt_super_note note = {.type = SILT_SUPER_LISTEN, .key = c->question, .number = c->row.number};
    silt_registry_tell_super(c->all->registry, &note);
    silt_loop_after(loop_of(c), &c->stop, LISTEN_MS);
}

/* Of a question that was given up: silt-super was told so before the next one, and has closed its own. */
static bool is_late(const struct silt_container *c, uint32_t question)
{
    return c->listen >= 0 || (question != 0 && question != c->question);
}

void silt_containers_on_listener(struct silt_containers *all, uint64_t number, uint32_t question, int fd)
{
    silt_auto_fd own = fd;
    if (is_of_wait(all, number, &own))
        return;
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        struct silt_error e;
        if (c->row.number != number || c->spec.kind != SILT_CONTAINER_SIDECAR)
            continue;
        if (is_late(c, question))
            return;
        if (c->state != SILT_CONTAINER_IS_STARTING && c->state != SILT_CONTAINER_IS_RUNNING)
            break;
        if (own < 0) {
            tell_unlisten(all, number);
            (void)silt_fail(&e, SILT_UNAVAILABLE, "no listening socket could be made");
            could_not_start(c, &e);
            return;
        }
        struct sockaddr_in at = {0};
        socklen_t len = sizeof(at);
        (void)getsockname(own, (struct sockaddr *)&at, &len);
        c->port = ntohs(at.sin_port);
        silt_loop_cancel(loop_of(c), &c->stop);
        all->hooks.listen(all->hooks.context, c, silt_take_fd(&own));
        if (c->state == SILT_CONTAINER_IS_STARTING)
            is_running(c);
        return;
    }
    tell_unlisten(all, number);
}

void silt_container_start(struct silt_container *c, struct silt_container_ask *a)
{
    struct silt_error e;
    silt_list_init(&a->link);
    silt_list_append(&c->starters, &a->link);
    if (c->state == SILT_CONTAINER_IS_STARTING)
        return;
    assert(c->state == SILT_CONTAINER_IS_CREATED || c->state == SILT_CONTAINER_IS_EXITED);
    enter(c, SILT_CONTAINER_IS_STARTING);
    switch (c->spec.kind) {
    case SILT_CONTAINER_SIDECAR:
        start_sidecar(c);
        return;
    case SILT_CONTAINER_COPY:
        is_running(c);
        silt_container_copy(c, on_copied);
        return;
    case SILT_CONTAINER_APP:
        c->waiter.on_ready = on_ready;
        if (silt_container_use(c, &c->waiter, &e) < 0)
            could_not_start(c, &e);
        return;
    }
}

/* The beginning */

static struct silt_container *new_container(struct silt_containers *all)
{
    struct silt_container *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->all = all;
    c->listen = -1;
    c->delay.on_time = on_delay;
    c->stop.on_time = on_stop;
    c->grave.free = free_container;
    silt_arena_init(&c->arena, ARENA_MAX);
    silt_list_init(&c->link);
    silt_list_init(&c->starters);
    silt_list_init(&c->waits);
    silt_list_init(&c->removers);
    silt_list_init(&c->watch.link);
    silt_list_init(&c->waiter.link);
    return c;
}

static void add(struct silt_container *c)
{
    struct silt_containers *all = c->all;
    name_sandbox(c);
    silt_list_append(&all->list, &c->link);
    all->count++;
    silt_map_put(&all->by_name, silt_slice_of(c->row.name), c);
    silt_map_put(&all->by_id, silt_slice_of(c->row.id), c);
}

static bool is_image_of_sidecar(const struct silt_containers *all, silt_slice image)
{
    silt_list_each(it, &all->list)
    {
        const struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_SIDECAR && silt_slice_eq(c->spec.image, image))
            return true;
    }
    return false;
}

/* workerd fills a volume through a container of the sidecar's image, which it never starts: nothing of that image is here, or needed. */
static int find_image(struct silt_container *c, struct silt_container_image *image, struct silt_error *e)
{
    struct silt_registry *r = c->all->registry;
    if (silt_container_image(r, c->spec.image, image, e) == 0)
        return 0;
    if (c->spec.mount_count == 0 || !is_image_of_sidecar(c->all, c->spec.image))
        return -1;
    return silt_container_image(r, silt_slice_of(r->settings.image), image, e);
}

static int check(struct silt_container *c, struct silt_container_image *image, struct silt_error *e)
{
    if (c->spec.kind != SILT_CONTAINER_APP)
        return 0; /* its image is never used */
    if (find_image(c, image, e) < 0)
        return -1;
    if (c->spec.sidecar.len > 0) {
        struct silt_container *sidecar = silt_container_find(c->all, c->spec.sidecar);
        if (sidecar == NULL || sidecar->spec.kind != SILT_CONTAINER_SIDECAR)
            return silt_fail(e, SILT_NOT_FOUND, "No such container: %.*s", (int)c->spec.sidecar.len, c->spec.sidecar.data);
    }
    return 0;
}

static char *copy_of(silt_slice s)
{
    char *copy = strndup(s.len > 0 ? s.data : "", s.len);
    if (copy == NULL)
        abort();
    return copy;
}

static void on_cleared(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    struct silt_container *c = silt_container_of(w, struct silt_container, waiter);
    bool asked = !silt_list_empty(&c->starters);
    (void)s;
    c->clearing = false;
    tell_asks(&c->starters, e);
    if (e != NULL && asked)
        is_gone(c); /* who made it was told that it is not; one of an earlier siltd's stays, and cannot be started */
}

static void clear(struct silt_container *c, struct silt_sandbox *s)
{
    c->clearing = true;
    c->waiter.on_ready = on_cleared;
    silt_sandbox_destroy(s, &c->waiter);
}

/* What an earlier one of this name left is the new one's, if it is of the same image. */
static void take_files(struct silt_container *c)
{
    struct silt_sandbox *s = sandbox_of(c);
    c->reused = s != NULL && c->all->keep_s > 0 && s->state != SILT_SANDBOX_DESTROYING
                && memcmp(s->row.digest, c->row.digest, SILT_DIGEST_SIZE) == 0 && silt_container_fits_network(c, s);
    if (s != NULL && !c->reused)
        clear(c, s);
}

bool silt_container_is_made(struct silt_container *c, struct silt_container_ask *a)
{
    silt_list_init(&a->link);
    if (c->clearing)
        silt_list_append(&c->starters, &a->link);
    return !c->clearing;
}

int silt_container_create(struct silt_containers *all, silt_slice name, silt_slice body, uint32_t uid,
                          struct silt_container **ret, struct silt_error *e)
{
    struct silt_container_image image = {0};
    if (name.len > 0 && silt_map_find(&all->by_name, name) != NULL)
        return silt_fail(e, SILT_CONFLICT, "Conflict. The container name \"/%.*s\" is already in use", (int)name.len, name.data);
    if (all->count >= SILT_CONTAINERS_MAX)
        return silt_fail(e, SILT_LIMIT, "there are %zu containers already", all->count);
    struct silt_container *c = new_container(all);
    silt_id_random_hex(c->row.id);
    c->row.name = name.len > 0 ? copy_of(name) : strndup(c->row.id, 12);
    c->row.body = copy_of(body);
    if (silt_container_spec_read(&c->arena, silt_slice_of(c->row.body), &c->spec, e) < 0 || check(c, &image, e) < 0) {
        free_container(&c->grave);
        return -1;
    }
    c->row.uid = uid;
    c->row.number = silt_registry_number(all->registry);
    c->row.created_ms = silt_clock_wall_ms();
    memcpy(c->row.digest, image.digest, sizeof(c->row.digest));
    c->builtin = image.builtin && c->spec.kind == SILT_CONTAINER_APP;
    silt_container_name_trust(c);
    add(c);
    save(c);
    take_files(c);
    if (c->spec.kind == SILT_CONTAINER_SIDECAR)
        silt_container_begin_capture(c);
    *ret = c;
    return 0;
}

/* Over restarts */

static struct silt_process *program_of(struct silt_sandbox *s)
{
    silt_list_each(it, &s->processes)
    {
        struct silt_process *p = silt_container_of(it, struct silt_process, link);
        if (strcmp(p->row.id, PROGRAM_ID) == 0 && !silt_process_is_over(p))
            return p;
    }
    return NULL;
}

static void load(void *context, struct silt_container_row *row)
{
    struct silt_containers *all = context;
    struct silt_container *c = new_container(all);
    struct silt_container_image image = {0};
    struct silt_error e;
    c->row = *row;
    if (c->row.name == NULL || c->row.body == NULL || silt_map_find(&all->by_name, silt_slice_of(c->row.name)) != NULL
        || silt_container_spec_read(&c->arena, silt_slice_of(c->row.body), &c->spec, &e) < 0) {
        silt_log(SILT_LOG_ERROR, "store.skip", "container=%s", c->row.id);
        free_container(&c->grave);
        return;
    }
    if (c->spec.kind == SILT_CONTAINER_APP)
        (void)silt_container_image(all->registry, c->spec.image, &image, &e);
    c->builtin = image.builtin;
    silt_container_name_trust(c);
    add(c);
    c->reused = true;
    enter(c, row->status == SILT_CONTAINER_RUNNING   ? SILT_CONTAINER_IS_RUNNING
             : row->status == SILT_CONTAINER_CREATED ? SILT_CONTAINER_IS_CREATED
                                                     : SILT_CONTAINER_IS_EXITED);
    c->unwatched = c->state == SILT_CONTAINER_IS_RUNNING;
    c->condemned = row->status == SILT_CONTAINER_GOING;
    struct silt_sandbox *s = sandbox_of(c);
    if (c->state != SILT_CONTAINER_IS_RUNNING || s == NULL)
        return;
    c->process = program_of(s);
    if (c->process != NULL)
        watch(c);
}

int silt_containers_load(struct silt_containers *all, struct silt_error *e)
{
    return silt_volumes_load(all, e) < 0 ? -1 : silt_store_each_container(all->registry->store, load, all, e);
}

/* Whether what a running one needs is still there. Of a program that has ended its record tells, later. */
static bool is_lost(struct silt_container *c)
{
    struct silt_sandbox *s = sandbox_of(c);
    if (c->spec.kind == SILT_CONTAINER_SIDECAR)
        return c->listen < 0;
    if (c->process != NULL)
        return false;
    return !c->builtin || s == NULL || !s->row.running;
}

void silt_containers_settle(struct silt_containers *all)
{
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        struct silt_sandbox *s = sandbox_of(c);
        if (c->state == SILT_CONTAINER_IS_RUNNING && is_lost(c))
            end(c, KILLED);
        else if (c->condemned)
            remove_now(c); /* siltd died while it did that */
        else if (c->state == SILT_CONTAINER_IS_CREATED && s != NULL && is_of_another_image(c, s))
            clear(c, s); /* siltd died while it did that */
    }
    silt_loop_after(all->registry->loop, &all->upkeep, UPKEEP_MS);
}

/* What nobody needs any more */

static bool is_needed(struct silt_container *sidecar)
{
    silt_list_each(it, &sidecar->all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->state < SILT_CONTAINER_IS_EXITED && is_behind(c, sidecar))
            return true;
    }
    return false;
}

/* A workerd that is dead has left it: nobody listens where its traffic would go. A living one comes back to it. */
static void look_at_sidecar(struct silt_container *c)
{
    uint16_t port = silt_container_egress_port(c);
    if (c->state != SILT_CONTAINER_IS_RUNNING || c->all->diag < 0 || port == 0 || is_needed(c)
        || silt_diag_listens(c->all->diag, port)) {
        c->unheard = 0;
        return;
    }
    if (++c->unheard >= UNHEARD_MAX)
        silt_container_remove(c, false, NULL);
}

static bool has_container(struct silt_containers *all, const char *sandbox)
{
    silt_list_each(it, &all->list)
        if (strcmp(silt_container_of(it, struct silt_container, link)->sandbox, sandbox) == 0)
            return true;
    return false;
}

static void expire_files(struct silt_containers *all)
{
    struct silt_registry *r = all->registry;
    int64_t before_ms = silt_clock_wall_ms() - (int64_t)all->keep_s * 1000;
    for (uint32_t i = 0; i < r->settings.slots; i++) {
        struct silt_sandbox *s = r->by_slot[i];
        if (s != NULL && s->state == SILT_SANDBOX_STOPPED && strlen(s->row.id) == 2 + SANDBOX_HEX
            && strncmp(s->row.id, "w-", 2) == 0 && s->row.labels != NULL && strstr(s->row.labels, "\"silt.container\"") != NULL
            && s->row.used_ms < before_ms && !has_container(all, s->row.id))
            silt_sandbox_destroy(s, NULL);
    }
}

static void on_upkeep(struct silt_timer *t)
{
    struct silt_containers *all = silt_container_of(t, struct silt_containers, upkeep);
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        if (c->spec.kind == SILT_CONTAINER_SIDECAR)
            look_at_sidecar(c);
    }
    expire_files(all);
    silt_loop_after(all->registry->loop, t, UPKEEP_MS);
}

struct silt_containers *silt_containers_new(struct silt_registry *r)
{
    struct silt_containers *all = calloc(1, sizeof(*all));
    if (all == NULL)
        abort();
    *all = (struct silt_containers){.registry = r, .diag = -1, .upkeep = {.on_time = on_upkeep}};
    silt_list_init(&all->list);
    silt_list_init(&all->volumes);
    silt_map_init(&all->by_name);
    silt_map_init(&all->by_id);
    return all;
}

void silt_containers_free(struct silt_containers *all)
{
    if (all == NULL)
        return;
    silt_loop_cancel(all->registry->loop, &all->upkeep);
    silt_list_each(it, &all->list)
    {
        struct silt_container *c = silt_container_of(it, struct silt_container, link);
        silt_loop_cancel(loop_of(c), &c->delay);
        silt_loop_cancel(loop_of(c), &c->stop);
        silt_container_unmount(c);
        silt_process_unwatch(&c->watch);
        silt_waiter_leave(&c->waiter);
        silt_list_remove(&c->link);
        free_container(&c->grave);
    }
    silt_volumes_free(all);
    silt_map_fini(&all->by_name);
    silt_map_fini(&all->by_id);
    silt_close_fd(&all->diag);
    free(all);
}
