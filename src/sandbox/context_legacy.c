/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "sandbox/context_own.h"

enum {
    PONG_MS = 1000, /* for one that runs nothing to say so */
};

void silt_context_load(struct silt_sandbox *s, struct silt_context_row *row)
{
    struct silt_context *c = silt_context_add(s);
    c->row = *row;
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
}

static struct silt_context *find_number(struct silt_sandbox *s, uint64_t number)
{
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (c->row.number == number)
            return c;
    }
    return NULL;
}

void silt_context_on_pong(struct silt_sandbox *s, uint64_t number)
{
    struct silt_context *c = number != 0 ? find_number(s, number) : NULL;
    if (c != NULL && c->state == SILT_CONTEXT_SETTLING && c->ping == 0)
        silt_context_send_ping(c);
}

void silt_context_outlive(struct silt_sandbox *s, uint64_t number)
{
    struct silt_context *c = find_number(s, number);
    if (c != NULL)
        silt_context_set_death(c, "upgraded", "Silt was upgraded, and talks to interpreters in another way now");
}

/* Whether it is at work it says itself, when it is not. */
void silt_context_adopt(struct silt_sandbox *s, uint64_t number, const int fds[SILT_KERNEL_FDS])
{
    struct silt_context *c = find_number(s, number);
    if (c == NULL || c->ping != 0) {
        for (int i = 0; i < SILT_KERNEL_FDS; i++)
            (void)close(fds[i]);
        return;
    }
    silt_kernel_adopt(&c->kernel, fds);
    silt_context_send_ping(c);
    silt_context_enter(c, SILT_CONTEXT_UNSURE);
    int64_t left_ms = c->row.deadline_ms - silt_clock_wall_ms();
    if (c->row.deadline_ms > 0) /* the deadline stays written when its run has ended */
        silt_loop_after(s->registry->loop, &c->deadline, left_ms > PONG_MS ? left_ms : PONG_MS);
}

bool silt_context_adopt_exec(struct silt_sandbox *s, uint64_t number)
{
    struct silt_context *c = find_number(s, number);
    if (c == NULL || c->exec != NULL || c->state == SILT_CONTEXT_DEAD)
        return false; /* its pong may have come first: then it is idle, or runs already */
    c->exec = silt_exec_adopt(s, number, true, &c->sink);
    return true;
}

void silt_context_settle_all(struct silt_sandbox *s)
{
    struct silt_error e;
    silt_list_each(it, &s->contexts)
    {
        struct silt_context *c = silt_container_of(it, struct silt_context, link);
        if (c->exec != NULL && c->ping != 0 && !c->removing)
            continue;
        c->removing = c->removing || c->death.cause[0] == 0; /* one that was outlived stays, to say so */
        if (c->exec != NULL) { /* nobody can talk to it any more */
            silt_context_kill(c, "daemon_restart",
                              "the daemon was restarted while the context began");
            continue;
        }
        (void)silt_fail(&e, SILT_GONE, "the daemon was restarted");
        silt_context_die(c, &e);
    }
}
