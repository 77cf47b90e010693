/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "sandbox/context/internal.h"
#include "sandbox/core/facet.h"

enum {
    PONG_MS = 1000, /* for an idle one to answer */
};

static struct silt_sandbox *sandbox_of(const struct silt_registry *r, uint32_t slot)
{
    return slot < r->settings.slots ? r->by_slot[slot] : NULL;
}

static void load_row(void *context, struct silt_context_row *row)
{
    struct silt_sandbox *s = sandbox_of(context, row->slot);
    if (s == NULL) {
        silt_context_row_fini(row);
        return;
    }
    struct silt_context *c = silt_context_add(s);
    c->row = *row;
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
}

static struct silt_context *find_number(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (c->row.number == number)
            return c;
    }
    return NULL;
}

/* A PONG without a number only says that the agent is alive. */
static void on_pong(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    struct silt_context *c = f->id != 0 ? find_number(s, f->id) : NULL;
    (void)body_len;
    if (c != NULL && c->state == SILT_CONTEXT_SETTLING && c->ping == 0)
        silt_context_send_ping(c);
}

void silt_contexts_outlive(struct silt_registry *r, uint32_t slot, uint64_t number)
{
    struct silt_sandbox *s = sandbox_of(r, slot);
    struct silt_context *c = s != NULL ? find_number(s, number) : NULL;
    if (c != NULL)
        silt_context_set_death(c, "upgraded",
                               "Silt was upgraded, and talks to interpreters in another way now");
}

/* The kernel itself reports when it is idle. */
void silt_contexts_adopt(struct silt_registry *r, uint32_t slot, uint64_t number,
                         const int fds[SILT_KERNEL_FDS])
{
    struct silt_sandbox *s = sandbox_of(r, slot);
    struct silt_context *c = s != NULL ? find_number(s, number) : NULL;
    if (c == NULL || c->ping != 0) {
        for (int i = 0; i < SILT_KERNEL_FDS; i++)
            (void)close(fds[i]);
        return;
    }
    silt_kernel_adopt(&c->kernel, fds);
    silt_context_send_ping(c);
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
    int64_t left_ms = c->row.deadline_ms - silt_clock_wall_ms();
    if (c->row.deadline_ms > 0) /* the deadline stays in the row after its run has ended */
        silt_loop_after(r->loop, &c->deadline, left_ms > PONG_MS ? left_ms : PONG_MS);
}

static bool adopt_exec(struct silt_sandbox *s, uint64_t number,
                       const struct silt_agent_exec_info *info)
{
    (void)info;
    struct silt_context *c = find_number(s, number);
    if (c == NULL || c->exec != NULL || c->state == SILT_CONTEXT_DEAD)
        return false; /* its PONG may have come first: it is idle or already running */
    c->exec = silt_exec_adopt(s, number, SILT_EXEC_CONTEXT, &c->sink);
    return true;
}

static void settle_all(struct silt_sandbox *s)
{
    struct silt_error e;
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_outer(it, struct silt_context, link);
        if (c->exec != NULL && c->ping != 0 && !c->removing)
            continue;
        /* One with an incompatible protocol stays, to report that. */
        c->removing = c->removing || c->death.cause[0] == 0;
        if (c->exec != NULL) { /* it cannot be reached any more */
            silt_context_kill(c, "daemon_restart",
                              "the daemon was restarted while the context began");
            continue;
        }
        (void)silt_fail(&e, SILT_GONE, "the daemon was restarted");
        silt_context_die(c, &e);
    }
}

static void open_lanes(struct silt_registry *r)
{
    silt_fair_queue_init(&r->lanes, SILT_KERNEL_LANES, SILT_KERNEL_LANES_EACH);
}

static int load(struct silt_registry *r, struct silt_error *e)
{
    return silt_store_each_context(r->store, load_row, r, e);
}

static void interrupt_all(struct silt_sandbox *s)
{
    silt_list_each(it, &s->contexts)(void)
        silt_context_interrupt(silt_outer(it, struct silt_context, link));
}

const struct silt_facet silt_context_facet = {
    .open = open_lanes,
    .load = load,
    .settle = settle_all,
    .on_ended = silt_context_drop_all,
    .forget = silt_context_forget_all,
    .adopt_exec = adopt_exec,
    .frames = SILT_FRAME_OF(SILT_AGENT_PONG),
    .on_frame = on_pong,
    .on_kill_all = interrupt_all,
};
