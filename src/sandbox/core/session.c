/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/core/session.h"
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
    free(s);
}

static void remove_session(struct silt_session *s)
{
    silt_list_remove(&s->link);
    s->sandbox->session_count--;
    silt_loop_bury(s->sandbox->registry->loop, &s->grave);
}

/* ---- shells lost in a crash ---- */

struct lost {
    struct silt_link link;
    char name[SILT_SESSION_NAME_MAX + 1];
};

static void forget_lost(struct silt_sandbox *sandbox, struct lost *l)
{
    silt_list_remove(&l->link);
    sandbox->lost_count--;
    free(l);
}

static void forget_all_lost(struct silt_sandbox *sandbox)
{
    struct lost *l;
    while ((l = silt_list_first(&sandbox->lost_sessions, struct lost, link)) != NULL)
        forget_lost(sandbox, l);
}

/* True if one of that name was lost; forgets it. */
static bool take_lost(struct silt_sandbox *sandbox, const char *name)
{
    silt_list_each(it, &sandbox->lost_sessions)
    {
        struct lost *l = silt_outer(it, struct lost, link);
        if (strcmp(l->name, name) != 0)
            continue;
        forget_lost(sandbox, l);
        return true;
    }
    return false;
}

static void remember_lost(const struct silt_session *s)
{
    struct silt_sandbox *sandbox = s->sandbox;
    (void)take_lost(sandbox, s->name);
    if (sandbox->lost_count == SILT_SESSIONS_MAX) /* drop the oldest */
        forget_lost(sandbox, silt_outer(sandbox->lost_sessions.next, struct lost, link));
    struct lost *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    memcpy(l->name, s->name, sizeof(l->name));
    silt_list_init(&l->link);
    silt_list_append(&sandbox->lost_sessions, &l->link);
    sandbox->lost_count++;
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

void silt_session_export(struct silt_sandbox *sandbox, silt_slice name, silt_slice value)
{
    struct silt_buf *b = &sandbox->exported;
    silt_env_drop(b, name);
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
        if (s->number == number)
            return s;
    }
    return NULL;
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
    silt_env_base(&env, s->sandbox, user.len == 0);
    silt_env_merge(&env, silt_buf_slice(&s->sandbox->exported));
    silt_env_merge(&env, o->env);
    silt_env_merge(&env, SILT_LIT("LANG=C.UTF-8\0LC_ALL=C.UTF-8\0"));
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
    return s->state != SILT_SESSION_DEAD || s->holder != NULL || !silt_list_empty(&s->turns);
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
    if (open_shell(s, o, e) < 0) {
        remove_session(s);
        return -1;
    }
    s->restarted = take_lost(sandbox, s->name);
    *ret = s;
    return 0;
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
    silt_list_init(&t->link);
    silt_list_append(&s->turns, &t->link);
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
        || sandbox->session_count >= SILT_SESSIONS_MAX)
        return;
    memcpy(&note, f->body + sizeof(info), info.note_len);
    silt_slice name = {note.name, name_len};
    if (silt_slice_has_byte(name, 0) || silt_session_find(sandbox, name) != NULL)
        return;
    struct silt_session *s = add_session(sandbox, name);
    s->number = f->id;
    s->timeout_ms = note.timeout_ms;
    s->foreign_exec = info.busy_exec;
    s->pid = info.pid;
    s->state = SILT_SESSION_OPEN;
}

static void on_frame(struct silt_sandbox *sandbox, const struct silt_frame *f, size_t body_len)
{
    if (f->type == SILT_AGENT_SESSION_INFO) {
        on_info(sandbox, f, body_len);
        return;
    }
    struct silt_session *s = find_number(sandbox, f->id);
    if (s == NULL)
        return;
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

static void drop_all(struct silt_sandbox *sandbox, const struct silt_error *e)
{
    bool crashed = strcmp(sandbox->row.death.cause, "crash") == 0;
    silt_buf_fini(&sandbox->exported);
    silt_list_each(it, &sandbox->sessions)
    {
        struct silt_session *s = silt_outer(it, struct silt_session, link);
        struct silt_turn *closer = s->closing ? s->holder : NULL;
        if (crashed && closer == NULL)
            remember_lost(s);
        fail_turns(s, e);
        remove_session(s);
        if (closer != NULL)
            closer->go(closer, NULL, NULL); /* it is gone, as requested */
    }
}

static void forget_all(struct silt_sandbox *sandbox)
{
    silt_list_each(it, &sandbox->sessions)
        free_session(&silt_outer(it, struct silt_session, link)->grave);
    silt_list_init(&sandbox->sessions);
}

const struct silt_facet silt_session_facet = {
    .on_ended = drop_all,
    .forget = forget_all,
    .fini = forget_all_lost,
    .frames = SILT_FRAME_OF(SILT_AGENT_SESSION_INFO) | SILT_FRAME_OF(SILT_AGENT_OPENED)
              | SILT_FRAME_OF(SILT_AGENT_CLOSED) | SILT_FRAME_OF(SILT_AGENT_DIED)
              | SILT_FRAME_OF(SILT_AGENT_FAILED),
    .on_frame = on_frame,
};
