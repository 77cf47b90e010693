/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/flush.h"
#include "sandbox/process/process.h"

static bool is_under_way(const struct silt_flush *f)
{
    return f->asked != f->answered;
}

static void ask(struct silt_process *p)
{
    p->flush.asked++;
    silt_exec_flush(p->exec);
}

uint64_t silt_flush_want(struct silt_process *p)
{
    struct silt_flush *f = &p->flush;
    if (p->exec == NULL || p->row.status != SILT_PROCESS_RUNNING)
        return 0;
    if (is_under_way(f)) {
        /* Output written since the request was sent must be included, too. */
        f->wanted = f->asked + 1;
        return f->wanted;
    }
    ask(p);
    f->wanted = f->asked;
    return f->wanted;
}

bool silt_flush_is_done(const struct silt_process *p, uint64_t number)
{
    return p->flush.answered >= number || silt_process_is_over(p);
}

void silt_flush_on_answer(struct silt_process *p)
{
    struct silt_flush *f = &p->flush;
    if (!is_under_way(f))
        return;
    f->answered = f->asked;
    if (f->wanted > f->asked && p->exec != NULL)
        ask(p);
}

void silt_flush_give_up(struct silt_process *p, uint64_t number)
{
    if (is_under_way(&p->flush) && p->flush.asked == number)
        silt_flush_on_answer(p);
}
