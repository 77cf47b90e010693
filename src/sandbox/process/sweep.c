/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/sweep.h"
#include "sandbox/process/process.h"
#include "sandbox/core/facet.h"

/* End of the year 9999: years are written with four digits. */
static const int64_t STARTED_MS_MAX = 253402300799999;

static void finish(struct silt_sweep *w, const struct silt_agent_swept *swept,
                   const struct silt_error *e)
{
    silt_sweep_leave(w);
    w->on_done(w, swept, e);
}

void silt_sweep_leave(struct silt_sweep *w)
{
    struct silt_sandbox *s = w->sandbox;
    w->sandbox = NULL;
    if (s == NULL)
        return;
    silt_list_remove(&w->link);
    silt_sandbox_release(s);
}

bool silt_sweep_start(struct silt_sandbox *s, const struct silt_agent_sweep *how,
                      struct silt_sweep *w)
{
    struct silt_frame_out f = {.type = SILT_AGENT_SWEEP, .body = {(const char *)how, sizeof(*how)}};
    if (s->state != SILT_SANDBOX_RUNNING || s->channel.watch.fd < 0)
        return false;
    w->sandbox = s;
    w->number = f.id = silt_registry_number(s->registry);
    w->pid = how->pid;
    w->told = 0;
    silt_list_append(&s->sweeps, &w->link);
    silt_sandbox_hold(s);
    if (how->signal != 0 && how->pid == 0)
        silt_facets_call(s->registry, on_kill_all, s);
    silt_channel_send(s, &f);
    return true;
}

static const struct silt_process *process_of(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->processes)
    {
        const struct silt_process *p = silt_outer(it, struct silt_process, link);
        if (p->row.number == number && !silt_process_is_over(p))
            return p;
    }
    return NULL;
}

static const char *session_of(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->sessions)
    {
        const struct silt_session *session = silt_outer(it, struct silt_session, link);
        if (number != 0 && session->number == number)
            return session->name;
    }
    return NULL;
}

static void tell_of_exec(struct silt_sweep *w, const struct silt_agent_found *a,
                         struct silt_found *f)
{
    const struct silt_process *p = process_of(w->sandbox, a->owner);
    bool is_terminal = p != NULL && silt_process_is_terminal(p);
    if (p != NULL && !is_terminal && w->pid == 0)
        return; /* its record covers its children */
    f->kind = is_terminal                                               ? "terminal"
              : p == NULL && silt_exec_is_lasting(w->sandbox, a->owner) ? "context"
                                                                        : "command";
    f->session = p != NULL ? p->row.session : NULL;
    w->on_found(w, f);
}

static void tell(struct silt_sweep *w, const struct silt_agent_found *a, silt_slice command)
{
    struct silt_found f = {
        .count = 1, .pid = a->pid, .started_ms = a->started_ms, .command = command};
    if (a->pid < 0)
        f = (struct silt_found){.count = 0U - (uint32_t)a->pid};
    if (a->in == SILT_FOUND_EXEC) {
        tell_of_exec(w, a, &f);
        return;
    }
    f.kind = a->in == SILT_FOUND_COMMAND ? "command" : "leftover";
    f.session = session_of(w->sandbox, a->owner);
    w->on_found(w, &f);
}

static void on_found(struct silt_sweep *w, const struct silt_frame *f, size_t body_len)
{
    struct silt_agent_found a;
    for (size_t at = 0; body_len - at >= sizeof(a); at += a.text_len) {
        memcpy(&a, f->body + at, sizeof(a));
        at += sizeof(a);
        if (a.text_len > SILT_FOUND_TEXT_MAX || a.text_len > body_len - at || a.pid == 0
            || a.started_ms < 0 || a.started_ms > STARTED_MS_MAX)
            return;
        if (a.pid > 0 && ++w->told > SILT_FOUND_MAX)
            return;
        tell(w, &a, (silt_slice){f->body + at, a.text_len});
    }
}

static struct silt_sweep *find(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->sweeps)
    {
        struct silt_sweep *w = silt_outer(it, struct silt_sweep, link);
        if (w->number == number)
            return w;
    }
    return NULL;
}

static void on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    struct silt_sweep *w = find(s, f->id);
    struct silt_agent_swept swept;
    struct silt_error e;
    if (w == NULL)
        return;
    if (f->type == SILT_AGENT_FOUND) {
        on_found(w, f, body_len);
    } else if (f->type == SILT_AGENT_SWEPT) {
        memcpy(&swept, f->body, sizeof(swept));
        finish(w, &swept, NULL);
    } else { /* refused: too many at once, or an agent too old to support it */
        memcpy(&e, f->body, sizeof(e));
        e.text[sizeof(e.text) - 1] = 0;
        if ((unsigned)e.code >= SILT_CODE_MAX)
            e.code = SILT_PROTOCOL;
        finish(w, NULL, &e);
    }
}

static void drop_all(struct silt_sandbox *s, const struct silt_error *e)
{
    while (!silt_list_empty(&s->sweeps))
        finish(silt_list_first(&s->sweeps, struct silt_sweep, link), NULL, e);
}

const struct silt_facet silt_sweep_facet = {
    .on_ended = drop_all,
    .frames = SILT_FRAME_OF(SILT_AGENT_FOUND) | SILT_FRAME_OF(SILT_AGENT_SWEPT)
              | SILT_FRAME_OF(SILT_AGENT_FAILED),
    .on_frame = on_frame,
};
