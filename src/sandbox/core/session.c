/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/session.h"
#include "sandbox/core/session_state.h"
#include "base/log.h"
#include "sandbox/core/image.h"
#include "sandbox/core/facet.h"
#include "sandbox/core/start_frame.h"

#include <assert.h>
#include <stdlib.h>

/* What silt-init keeps about a session, so that a new siltd recognizes it. */
struct note {
    uint32_t timeout_ms;
    char name[SILT_SESSION_NAME_MAX];
};

static void free_session(struct silt_grave *g)
{
    struct silt_session *s = silt_outer(g, struct silt_session, grave);
    free(s->cwd);
    free(s->first_cwd);
    free(s->kept);
    free(s);
}

static void remove_session(struct silt_session *s)
{
    struct silt_session_row row = {.slot = s->sandbox->row.slot, .name = s->name};
    struct silt_error e;
    if (s->sandbox->state != SILT_SANDBOX_DESTROYING
        && silt_store_remove_session(s->sandbox->registry->store, &row, &e) < 0)
        silt_log(SILT_LOG_ERROR, "store.remove", "sandbox=%s error=%s", s->sandbox->row.id, e.text);
    silt_list_remove(&s->link);
    s->sandbox->session_count--;
    silt_loop_bury(s->sandbox->registry->loop, &s->grave);
}

/* ---- what sessions keep, in the store ---- */

enum {
    SAVE_MS = 20,    /* changes of this time are written together */
    SETTLE_MS = 250, /* how long a stop waits for what the sessions keep */
};

static void on_save(struct silt_timer *t);

static void save_later(struct silt_sandbox *sandbox)
{
    struct silt_registry *r = sandbox->registry;
    if (sandbox->row.id[0] == 0)
        return;
    silt_list_remove(&sandbox->sessions_unsaved);
    silt_list_append(&r->unsaved_sessions, &sandbox->sessions_unsaved);
    r->save_sessions.on_time = on_save;
    if (r->save_sessions.place == 0)
        silt_loop_after(r->loop, &r->save_sessions, SAVE_MS);
}

static void has_changed(struct silt_session *s)
{
    s->unsaved = true;
    save_later(s->sandbox);
}

static int put(struct silt_session *s, struct silt_error *e)
{
    struct silt_session_row row = {
        .slot = s->sandbox->row.slot,
        .name = s->name,
        .version = SILT_SESSION_STATE_VERSION,
        .timeout_ms = s->timeout_ms,
        .cwd = s->cwd != NULL ? s->cwd : s->first_cwd,
        .env = s->kept,
        .env_len = s->kept_len,
    };
    return silt_store_put_session(s->sandbox->registry->store, &row, e);
}

static int put_exported(struct silt_sandbox *sandbox, struct silt_error *e)
{
    struct silt_session_row row = {
        .slot = sandbox->row.slot,
        .name = "",
        .version = SILT_SESSION_STATE_VERSION,
        .env = sandbox->exported.data,
        .env_len = sandbox->exported.len,
    };
    return silt_store_put_session(sandbox->registry->store, &row, e);
}

/* What a full disk refuses, upkeep tries again. */
static void save_now(struct silt_sandbox *sandbox)
{
    struct silt_error e;
    silt_list_remove(&sandbox->sessions_unsaved);
    if (sandbox->exported_unsaved && put_exported(sandbox, &e) == 0)
        sandbox->exported_unsaved = false;
    bool failed = sandbox->exported_unsaved;
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (!s->unsaved)
            continue;
        s->unsaved = put(s, &e) < 0;
        failed = failed || s->unsaved;
    }
    if (!failed)
        return;
    sandbox->unsaved = true;
    silt_log(SILT_LOG_ERROR, "store.put", "sandbox=%s sessions error=%s", sandbox->row.id, e.text);
}

static void on_save(struct silt_timer *t)
{
    struct silt_registry *r = silt_outer(t, struct silt_registry, save_sessions);
    silt_list_each(it, &r->unsaved_sessions)
    {
        save_now(silt_outer(it, struct silt_sandbox, sessions_unsaved));
    }
}

static void set_text(char **to, silt_slice text)
{
    free(*to);
    *to = text.len > 0 ? strndup(text.data, text.len) : NULL;
}

static void set_kept(struct silt_session *s, silt_slice kept)
{
    free(s->kept);
    s->kept = kept.len > 0 ? malloc(kept.len) : NULL;
    s->kept_len = kept.len;
    if (kept.len > 0 && s->kept == NULL)
        abort();
    if (kept.len > 0)
        memcpy(s->kept, kept.data, kept.len);
}

static bool is_text(const char *text, silt_slice other)
{
    return text != NULL && silt_slice_eq(silt_slice_of(text), other);
}

void silt_session_moved(struct silt_session *s, silt_slice cwd)
{
    if (is_text(s->cwd, cwd))
        return;
    set_text(&s->cwd, cwd);
    has_changed(s);
}

bool silt_session_take_restart(struct silt_session *s)
{
    bool restarted = s->restarted;
    s->restarted = false;
    return restarted;
}

static struct silt_session *add_session(struct silt_sandbox *sandbox, silt_slice name)
{
    struct silt_session *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->sandbox = sandbox;
    s->grave.free = free_session;
    s->exit_code = -1;
    silt_list_init(&s->turns);
    memcpy(s->name, name.data, name.len);
    silt_list_append(&sandbox->sessions, &s->link);
    sandbox->session_count++;
    return s;
}

/* Past its limit all of it is forgotten: then a session seems to have set more than it did. */
static void note_former(struct silt_sandbox *sandbox, silt_slice name, silt_slice value)
{
    struct silt_buf *b = &sandbox->former_env;
    if (value.data == NULL)
        return;
    if (b->len + name.len + value.len + 2 > b->max)
        b->len = 0;
    if (name.len + value.len + 2 > b->max)
        return;
    silt_buf_add(b, name);
    silt_buf_add_byte(b, '=');
    silt_buf_add(b, value);
    silt_buf_add_byte(b, 0);
}

void silt_session_env_changes(struct silt_sandbox *sandbox, silt_slice before)
{
    silt_slice one, name;
    while (before.len > 0 && silt_slice_split(&before, 0, &one))
        if (silt_slice_split(&one, '=', &name) && one.data != NULL)
            note_former(sandbox, name, one);
}

void silt_session_export(struct silt_sandbox *sandbox, silt_slice name, silt_slice value)
{
    struct silt_buf *b = &sandbox->exported;
    note_former(sandbox, name, silt_env_find(silt_buf_slice(b), name));
    silt_env_drop(b, name);
    sandbox->exported_unsaved = true;
    save_later(sandbox);
    if (value.data == NULL || b->len + name.len + value.len + 2 > b->max)
        return;
    silt_buf_add(b, name);
    silt_buf_add_byte(b, '=');
    silt_buf_add(b, value);
    silt_buf_add_byte(b, 0);
}

struct silt_session *silt_session_find(struct silt_sandbox *sandbox, silt_slice name)
{
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (silt_slice_eq(silt_slice_of(s->name), name))
            return s;
    }
    return NULL;
}

static struct silt_session *find_number(struct silt_sandbox *sandbox, uint64_t number)
{
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->number == number && s->state != SILT_SESSION_ASLEEP)
            return s;
    }
    return NULL;
}

/* What every session gets; `own`: what this one was given. */
static void add_base(struct silt_buf *env, struct silt_sandbox *sandbox, silt_slice own)
{
    silt_env_base(env, sandbox, silt_image_user(sandbox).len == 0);
    silt_env_merge(env, silt_buf_slice(&sandbox->exported));
    silt_env_merge(env, own);
    silt_env_merge(env, SILT_LIT("LANG=C.UTF-8\0LC_ALL=C.UTF-8\0"));
}

static int open_shell(struct silt_session *s, const struct silt_session_options *o,
                      struct silt_error *e)
{
    struct note note = {.timeout_ms = s->timeout_ms};
    size_t name_len = strlen(s->name);
    memcpy(note.name, s->name, name_len);
    silt_auto_buf env;
    silt_buf_init(&env, SILT_START_MAX);
    silt_slice user = silt_image_user(s->sandbox);
    add_base(&env, s->sandbox, o->env);
    silt_session_state_apply(&env, (silt_slice){s->kept, s->kept_len});
    s->number = silt_registry_number(s->sandbox->registry);
    s->state = SILT_SESSION_OPENING;
    s->exit_code = -1;
    s->pid = 0;
    struct silt_start_frame start = {
        .note = {(const char *)&note, sizeof(note.timeout_ms) + name_len},
        .cwd = o->cwd.len > 0 ? o->cwd : silt_image_workdir(s->sandbox),
        .env = silt_buf_slice(&env),
        .user = user,
    };
    if (env.broken)
        return silt_fail(e, SILT_LIMIT, "environment of more than %d bytes", SILT_START_MAX);
    return silt_start_frame_send(s->sandbox, SILT_AGENT_OPEN, s->number, &start, e);
}

bool silt_session_is_live(const struct silt_session *s)
{
    return s->state == SILT_SESSION_OPENING || s->state == SILT_SESSION_OPEN || s->holder != NULL
           || !silt_list_empty(&s->turns);
}

int silt_session_new(struct silt_sandbox *sandbox, silt_slice name,
                     const struct silt_session_options *o, struct silt_session **ret,
                     struct silt_error *e)
{
    struct silt_session *old = silt_session_find(sandbox, name);
    assert(name.len <= SILT_SESSION_NAME_MAX && (old == NULL || !silt_session_is_live(old)));
    if (old != NULL)
        remove_session(old);
    if (sandbox->session_count >= SILT_SESSIONS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d sessions in this sandbox already; delete one",
                         SILT_SESSIONS_MAX);
    struct silt_session *s = add_session(sandbox, name);
    s->timeout_ms = o->timeout_ms;
    set_text(&s->first_cwd, o->cwd);
    if (open_shell(s, o, e) < 0) {
        remove_session(s);
        return -1;
    }
    has_changed(s);
    *ret = s;
    return 0;
}

void silt_session_amend(struct silt_session *s, const struct silt_session_options *o)
{
    silt_auto_buf kept;
    assert(s->state == SILT_SESSION_ASLEEP);
    silt_buf_init(&kept, SILT_START_MAX);
    silt_buf_add(&kept, (silt_slice){s->kept, s->kept_len});
    silt_env_merge(&kept, o->env);
    set_kept(s, silt_buf_slice(&kept));
    if (o->cwd.len > 0)
        set_text(&s->cwd, o->cwd);
    if (o->timeout_ms > 0)
        s->timeout_ms = o->timeout_ms;
    has_changed(s);
}

/* Its shell begins where the last one was. */
static int wake(struct silt_session *s, struct silt_error *e)
{
    const char *cwd = s->cwd != NULL ? s->cwd : s->first_cwd;
    struct silt_session_options o = {.timeout_ms = s->timeout_ms,
                                     .cwd = silt_slice_of(cwd != NULL ? cwd : "")};
    return open_shell(s, &o, e);
}

static void fail_turns(struct silt_session *s, const struct silt_error *e)
{
    while (!silt_list_empty(&s->turns)) {
        struct silt_turn *t = silt_list_first(&s->turns, struct silt_turn, link);
        silt_list_remove(&t->link);
        t->go(t, NULL, e);
    }
}

/* Waiters get a new shell under the same name; without any, the session is gone. */
static void reopen_or_remove(struct silt_session *s)
{
    struct silt_session_options o = {.timeout_ms = s->timeout_ms};
    struct silt_error e;
    if (silt_list_empty(&s->turns)) {
        remove_session(s);
        return;
    }
    free(s->cwd);
    s->cwd = NULL;
    set_kept(s, (silt_slice){NULL, 0});
    has_changed(s);
    if (open_shell(s, &o, &e) < 0) {
        fail_turns(s, &e);
        remove_session(s);
    }
}

static void tell_dead(struct silt_session *s, struct silt_turn *t)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_GONE, "Session '%s' shell exited (exit code: %d)", s->name,
                    s->exit_code);
    t->go(t, s, &e);
    reopen_or_remove(s);
}

static void give_turn(struct silt_session *s, struct silt_turn *t)
{
    silt_list_remove(&t->link);
    if (s->state == SILT_SESSION_DEAD) {
        tell_dead(s, t);
        return;
    }
    s->holder = t;
    t->go(t, s, NULL);
}

/* A turn may end before its go returns: iterate, since recursing for a thousand turns would go too
 * deep. */
static void advance(struct silt_session *s)
{
    struct silt_turn *t;
    if (s->advancing)
        return;
    s->advancing = true;
    while (s->holder == NULL && s->foreign_exec == 0 && s->state != SILT_SESSION_OPENING
           && (t = silt_list_first(&s->turns, struct silt_turn, link)) != NULL)
        give_turn(s, t);
    s->advancing = false;
}

void silt_session_enter(struct silt_session *s, struct silt_turn *t)
{
    struct silt_error e;
    silt_list_init(&t->link);
    silt_list_append(&s->turns, &t->link);
    if (s->state == SILT_SESSION_ASLEEP && wake(s, &e) < 0) {
        s->state = SILT_SESSION_ASLEEP;
        fail_turns(s, &e);
        return;
    }
    advance(s);
}

void silt_session_leave(struct silt_session *s, struct silt_turn *t)
{
    if (s->holder != t) {
        silt_list_remove(&t->link);
        return;
    }
    s->holder = NULL;
    advance(s);
}

void silt_session_close(struct silt_session *s, struct silt_turn *t)
{
    assert(s->holder == t);
    s->closing = true;
    silt_facets_call(s->sandbox->registry, on_session_ended, s->sandbox, s->number);
    struct silt_frame_out f = {.type = SILT_AGENT_CLOSE, .id = s->number};
    silt_channel_send(s->sandbox, &f);
}

void silt_session_shell_ended(struct silt_session *s)
{
    silt_facets_call(s->sandbox->registry, on_session_ended, s->sandbox, s->number);
    if (s->holder == NULL)
        reopen_or_remove(s);
}

void silt_session_foreign_ended(struct silt_sandbox *sandbox, uint64_t exec, bool restarted)
{
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        if (s->foreign_exec != exec)
            continue;
        s->foreign_exec = 0;
        s->pid = restarted ? 0 : s->pid;
        advance(s);
        return;
    }
}

static void on_closed(struct silt_session *s)
{
    struct silt_turn *t = s->holder;
    if (!s->closing)
        return;
    s->closing = false;
    s->holder = NULL;
    reopen_or_remove(s);
    t->go(t, NULL, NULL);
}

static void on_died(struct silt_session *s, const struct silt_frame *f)
{
    struct silt_agent_end end;
    memcpy(&end, f->body, sizeof(end));
    s->state = SILT_SESSION_DEAD;
    s->exit_code = end.code;
    s->foreign_exec = 0;
    silt_facets_call(s->sandbox->registry, on_session_ended, s->sandbox, s->number);
    if (s->closing)
        on_closed(s);
    else
        advance(s);
}

static void on_failed(struct silt_session *s, const struct silt_frame *f)
{
    struct silt_error e;
    memcpy(&e, f->body, sizeof(e));
    e.text[sizeof(e.text) - 1] = 0;
    if (s->state != SILT_SESSION_OPENING)
        return;
    (void)silt_because(&e, "open session '%s'", s->name);
    if (e.code == SILT_NOT_FOUND) /* the image's user does not exist: not the caller's mistake */
        e.code = SILT_UNAVAILABLE;
    fail_turns(s, &e);
    remove_session(s);
}

static void on_info(struct silt_sandbox *sandbox, const struct silt_frame *f, size_t body_len)
{
    struct silt_agent_session_info info;
    struct note note;
    memcpy(&info, f->body, sizeof(info));
    size_t name_len = (size_t)info.note_len - sizeof(note.timeout_ms);
    if (!silt_sandbox_is_adopted(sandbox)) /* it has no sessions we do not know */
        return;
    if (info.note_len <= sizeof(note.timeout_ms) || info.note_len > sizeof(note)
        || body_len != sizeof(info) + info.note_len || find_number(sandbox, f->id) != NULL
        || sandbox->session_count > SILT_SESSIONS_MAX)
        return;
    memcpy(&note, f->body + sizeof(info), info.note_len);
    silt_slice name = {note.name, name_len};
    if (silt_slice_has_byte(name, 0))
        return;
    struct silt_session *s = silt_session_find(sandbox, name);
    if (s != NULL && s->state != SILT_SESSION_ASLEEP)
        return;
    if (s == NULL)
        s = add_session(sandbox, name);
    s->number = f->id;
    s->timeout_ms = note.timeout_ms;
    s->foreign_exec = info.busy_exec;
    s->pid = info.pid;
    s->state = SILT_SESSION_OPEN;
}

/* Input of a guest. What cannot be kept leaves what was kept before. */
static void on_exported(struct silt_session *s, silt_slice text)
{
    struct silt_error e;
    silt_auto_buf now, base, kept;
    silt_buf_init(&now, SILT_SESSION_ENV_MAX);
    silt_buf_init(&base, SILT_START_MAX);
    silt_buf_init(&kept, SILT_SESSION_ENV_MAX);
    if (silt_session_state_parse(text, &now, &e) < 0) {
        silt_log(SILT_LOG_DEBUG, "session.exported", "sandbox=%s error=\"%s\"", s->sandbox->row.id,
                 e.text);
        return;
    }
    add_base(&base, s->sandbox, (silt_slice){NULL, 0});
    silt_session_state_diff(silt_buf_slice(&now), silt_buf_slice(&base),
                            silt_buf_slice(&s->sandbox->former_env), &kept);
    if (kept.broken
        || (kept.len == s->kept_len
            && (kept.len == 0 || memcmp(kept.data, s->kept, kept.len) == 0)))
        return;
    set_kept(s, silt_buf_slice(&kept));
    has_changed(s);
}

/* ---- before a stop ---- */

static void is_settled(struct silt_sandbox *sandbox)
{
    silt_loop_cancel(sandbox->registry->loop, &sandbox->settled);
    sandbox->settling = 0;
    silt_sandbox_on_settled(sandbox);
}

static void on_settle_late(struct silt_timer *t)
{
    is_settled(silt_outer(t, struct silt_sandbox, settled));
}

/* Waits until the sessions have reported what they keep. */
static bool settle(struct silt_sandbox *sandbox)
{
    if (sandbox->settling != 0)
        return true;
    bool runs = silt_sandbox_is_up(sandbox) || silt_sandbox_is_adopted(sandbox);
    if (!runs || silt_list_empty(&sandbox->sessions))
        return false;
    sandbox->settling = silt_registry_number(sandbox->registry);
    sandbox->settled.on_time = on_settle_late;
    struct silt_frame_out f = {
        .type = SILT_AGENT_PING, .flags = SILT_PING_EXPORTED, .id = sandbox->settling};
    silt_loop_after(sandbox->registry->loop, &sandbox->settled, SETTLE_MS);
    silt_channel_send(sandbox, &f);
    return true;
}

static void on_frame(struct silt_sandbox *sandbox, const struct silt_frame *f, size_t body_len)
{
    if (f->type == SILT_AGENT_SESSION_INFO) {
        on_info(sandbox, f, body_len);
        return;
    }
    if (f->type == SILT_AGENT_PONG) {
        if (sandbox->settling != 0 && f->id == sandbox->settling)
            is_settled(sandbox);
        return;
    }
    struct silt_session *s = find_number(sandbox, f->id);
    if (s == NULL)
        return;
    if (f->type == SILT_AGENT_EXPORTED && s->state == SILT_SESSION_OPEN) {
        on_exported(s, (silt_slice){f->body, body_len});
        return;
    }
    if (f->type == SILT_AGENT_OPENED && s->state == SILT_SESSION_OPENING) {
        memcpy(&s->pid, f->body, sizeof(s->pid));
        s->state = SILT_SESSION_OPEN;
        advance(s);
    } else if (f->type == SILT_AGENT_CLOSED) {
        on_closed(s);
    } else if (f->type == SILT_AGENT_DIED) {
        on_died(s, f);
    } else if (f->type == SILT_AGENT_FAILED) {
        on_failed(s, f);
    }
}

static void fall_asleep(struct silt_session *s, bool crashed)
{
    s->state = SILT_SESSION_ASLEEP;
    s->foreign_exec = 0;
    s->exit_code = -1;
    s->pid = 0;
    s->restarted = s->restarted || crashed;
}

/* The processes have ended. */
static void leave_all(struct silt_sandbox *sandbox, const struct silt_error *e)
{
    bool crashed = strcmp(sandbox->row.death.cause, "crash") == 0;
    bool destroyed = sandbox->state == SILT_SANDBOX_DESTROYING;
    silt_loop_cancel(sandbox->registry->loop, &sandbox->settled);
    sandbox->settling = 0;
    silt_buf_fini(&sandbox->former_env);
    if (destroyed)
        silt_buf_fini(&sandbox->exported);
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        struct silt_turn *closer = s->closing ? s->holder : NULL;
        fail_turns(s, e);
        if (destroyed || closer != NULL || s->state == SILT_SESSION_DEAD)
            remove_session(s);
        else
            fall_asleep(s, crashed);
        if (closer != NULL)
            closer->go(closer, NULL, NULL); /* it is gone, as requested */
    }
    if (destroyed)
        silt_list_remove(&sandbox->sessions_unsaved);
    else if (!silt_list_empty(&sandbox->sessions_unsaved))
        save_now(sandbox); /* not lost with this siltd */
}

static void forget_all(struct silt_sandbox *sandbox)
{
    silt_loop_cancel(sandbox->registry->loop, &sandbox->settled);
    silt_list_remove(&sandbox->sessions_unsaved);
    silt_list_each(it, &sandbox->sessions)
        free_session(&silt_outer(it, struct silt_session, link)->grave);
    silt_list_init(&sandbox->sessions);
}

/* ---- siltd ---- */

static void open_all(struct silt_registry *r)
{
    silt_list_init(&r->unsaved_sessions);
}

static void load_row(void *context, const struct silt_session_row *row)
{
    struct silt_registry *r = context;
    struct silt_sandbox *sandbox = row->slot < r->settings.slots ? r->by_slot[row->slot] : NULL;
    silt_slice name = silt_slice_of(row->name), env = {row->env, row->env_len};
    if (sandbox == NULL || row->version != SILT_SESSION_STATE_VERSION
        || name.len > SILT_SESSION_NAME_MAX || sandbox->session_count >= SILT_SESSIONS_MAX)
        return;
    if (name.len == 0) {
        silt_buf_add(&sandbox->exported, env);
        return;
    }
    struct silt_session *s = add_session(sandbox, name);
    s->state = SILT_SESSION_ASLEEP;
    s->timeout_ms = row->timeout_ms;
    set_text(&s->cwd, silt_slice_of(row->cwd != NULL ? row->cwd : ""));
    set_kept(s, env);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_session(r->store, load_row, r, e);
}

static void close_all(struct silt_registry *r)
{
    silt_loop_cancel(r->loop, &r->save_sessions);
    if (r->save_sessions.on_time != NULL)
        on_save(&r->save_sessions);
}

const struct silt_facet silt_session_facet = {
    .open = open_all,
    .load = load,
    .close = close_all,
    .on_halt = settle,
    .on_ended = leave_all,
    .save = save_now,
    .forget = forget_all,
    .frames = SILT_FRAME_OF(SILT_AGENT_SESSION_INFO) | SILT_FRAME_OF(SILT_AGENT_OPENED)
              | SILT_FRAME_OF(SILT_AGENT_CLOSED) | SILT_FRAME_OF(SILT_AGENT_DIED)
              | SILT_FRAME_OF(SILT_AGENT_FAILED) | SILT_FRAME_OF(SILT_AGENT_EXPORTED)
              | SILT_FRAME_OF(SILT_AGENT_PONG),
    .on_frame = on_frame,
};
