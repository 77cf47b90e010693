/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/hearing.h"
#include "base/own.h"

#include <assert.h>
#include <stdlib.h>

struct silt_hearing {
    struct silt_job job;
    struct silt_hearer *listener; /* borrowed; NULL: gone */
    struct silt_lane lane;
    struct silt_buf line, told;
    struct silt_arena arena;
    struct silt_kernel_said said;
    struct silt_error error;
    bool good;
};

/* On a thread. What a result is told with is written already, and its tree is large: the loop need not free it. */
static void run(struct silt_job *j)
{
    struct silt_hearing *h = silt_container_of(j, struct silt_hearing, job);
    h->good = silt_kernel_hear(&h->arena, &h->told, silt_buf_slice(&h->line), &h->said, &h->error) == 0;
    if (h->good && h->said.word != SILT_KERNEL_RESULT)
        return;
    h->said.body = NULL;
    silt_arena_fini(&h->arena);
    silt_buf_fini(&h->line);
}

static void free_hearing(struct silt_hearing *h)
{
    silt_lane_leave(&h->lane);
    silt_arena_fini(&h->arena);
    silt_buf_fini(&h->line);
    silt_buf_fini(&h->told);
    free(h);
}

static void on_done(struct silt_job *j)
{
    struct silt_hearing *h = silt_container_of(j, struct silt_hearing, job);
    struct silt_hearer *l = h->listener;
    if (l != NULL) {
        l->hearing = NULL;
        l->on_heard(l, h->good ? &h->said : NULL, &h->error);
    }
    free_hearing(h);
}

void silt_hearing_start(struct silt_worker *threads, struct silt_buf *line, struct silt_lane *lane,
                        struct silt_hearer *l)
{
    struct silt_hearing *h = calloc(1, sizeof(*h));
    if (h == NULL)
        abort();
    assert(l->hearing == NULL);
    h->job = (struct silt_job){.run = run, .done = on_done};
    h->listener = l;
    h->line = *line;
    silt_buf_init(line, line->max);
    silt_lane_pass(lane, &h->lane);
    silt_arena_init(&h->arena, SILT_KERNEL_TREE_MAX);
    silt_buf_init(&h->told, SILT_KERNEL_TOLD_MAX);
    l->hearing = h;
    silt_worker_submit(threads, &h->job);
}

void silt_hearing_leave(struct silt_hearer *l)
{
    if (l->hearing == NULL)
        return;
    l->hearing->listener = NULL;
    silt_lane_disown(&l->hearing->lane);
    l->hearing = NULL;
}
