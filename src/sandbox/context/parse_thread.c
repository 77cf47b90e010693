/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/parse_thread.h"
#include "base/own.h"

#include <assert.h>
#include <stdlib.h>

struct silt_parse_thread {
    struct silt_job job;
    struct silt_parse_listener *listener; /* borrowed; NULL: gone */
    struct silt_fair_queue_turn lane;
    struct silt_buf line, told;
    struct silt_arena arena;
    struct silt_kernel_said said;
    struct silt_error error;
    bool good;
};

/* Runs on the thread. The result is serialized by now, so free its large tree here and not in the
 * loop. */
static void run(struct silt_job *j)
{
    struct silt_parse_thread *h = silt_outer(j, struct silt_parse_thread, job);
    h->good =
        silt_kernel_hear(&h->arena, &h->told, silt_buf_slice(&h->line), &h->said, &h->error) == 0;
    if (h->good && h->said.word != SILT_KERNEL_RESULT)
        return;
    h->said.body = NULL;
    silt_arena_fini(&h->arena);
    silt_buf_fini(&h->line);
}

static void free_thread(struct silt_parse_thread *h)
{
    silt_fair_queue_turn_leave(&h->lane);
    silt_arena_fini(&h->arena);
    silt_buf_fini(&h->line);
    silt_buf_fini(&h->told);
    free(h);
}

static void on_done(struct silt_job *j)
{
    struct silt_parse_thread *h = silt_outer(j, struct silt_parse_thread, job);
    struct silt_parse_listener *l = h->listener;
    if (l != NULL) {
        l->thread = NULL;
        l->on_heard(l, h->good ? &h->said : NULL, &h->error);
    }
    free_thread(h);
}

void silt_parse_thread_start(struct silt_worker *threads, struct silt_buf *line,
                             struct silt_fair_queue_turn *lane, struct silt_parse_listener *l)
{
    struct silt_parse_thread *h = calloc(1, sizeof(*h));
    if (h == NULL)
        abort();
    assert(l->thread == NULL);
    h->job = (struct silt_job){.run = run, .done = on_done};
    h->listener = l;
    h->line = *line;
    silt_buf_init(line, line->max);
    silt_fair_queue_turn_pass(lane, &h->lane);
    silt_arena_init(&h->arena, SILT_KERNEL_TREE_MAX);
    silt_buf_init(&h->told, SILT_KERNEL_TOLD_MAX);
    l->thread = h;
    silt_worker_submit(threads, &h->job);
}

void silt_parse_thread_leave(struct silt_parse_listener *l)
{
    if (l->thread == NULL)
        return;
    l->thread->listener = NULL;
    silt_fair_queue_turn_disown(&l->thread->lane);
    l->thread = NULL;
}
