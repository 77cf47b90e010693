/* SPDX-License-Identifier: Apache-2.0 */
/* The last words of programs that failed as soon as they had begun: who looks at the container (State.Error) is told them. */
#include "sandbox/container_own.h"
#include "base/clock.h"
#include "sandbox/follow.h"
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SOON_MS = 5000, /* after its start: a program that ran for longer did begin */
    TAIL_MAX = 300, /* bytes of its last words */
};

struct listening {
    struct silt_containers *all; /* borrowed */
    struct silt_process *process; /* held */
    struct silt_follow_sink sink;
    char sandbox[SILT_ID_MAX + 1];
    int32_t code;
    char tail[TAIL_MAX];
    size_t len;
};

static struct silt_last_words *find(struct silt_containers *all, const char *sandbox)
{
    for (size_t i = 0; i < SILT_LAST_WORDS_MAX; i++)
        if (strcmp(all->words[i].sandbox, sandbox) == 0)
            return &all->words[i];
    return NULL;
}

static struct silt_last_words *take_place(struct silt_containers *all, const char *sandbox)
{
    struct silt_last_words *w = find(all, sandbox);
    if (w == NULL)
        w = &all->words[all->next_words++ % SILT_LAST_WORDS_MAX];
    *w = (struct silt_last_words){0};
    (void)snprintf(w->sandbox, sizeof(w->sandbox), "%s", sandbox);
    return w;
}

const char *silt_container_last_words(const struct silt_container *c)
{
    const struct silt_last_words *w = c->spec.kind == SILT_CONTAINER_APP ? find(c->all, c->sandbox) : NULL;
    return w != NULL && !silt_container_runs(c) ? w->text : "";
}

static void on_output(struct silt_follow_sink *sink, const struct silt_log_piece *piece)
{
    struct listening *l = silt_container_of(sink, struct listening, sink);
    silt_slice bytes = piece->bytes;
    if (bytes.len > TAIL_MAX)
        bytes = (silt_slice){bytes.data + bytes.len - TAIL_MAX, TAIL_MAX};
    size_t drop = l->len + bytes.len > TAIL_MAX ? l->len + bytes.len - TAIL_MAX : 0;
    memmove(l->tail, l->tail + drop, l->len - drop);
    memcpy(l->tail + l->len - drop, bytes.data, bytes.len);
    l->len = l->len - drop + bytes.len;
}

static void on_gap(struct silt_follow_sink *sink, uint64_t bytes, enum silt_gap why, uint64_t cursor)
{
    (void)sink;
    (void)bytes;
    (void)why;
    (void)cursor;
}

static bool is_full(struct silt_follow_sink *sink)
{
    (void)sink;
    return false;
}

static void finish(struct listening *l)
{
    struct silt_last_words *w = take_place(l->all, l->sandbox);
    while (l->len > 0 && (unsigned char)l->tail[l->len - 1] <= ' ')
        l->len--;
    silt_error_show(l->tail, l->len);
    (void)snprintf(w->text, sizeof(w->text), "its program ended at once with code %d%s%.*s", (int)l->code, l->len > 0 ? "; its last words: " : "",
                   (int)l->len, l->tail);
    silt_process_release(l->process);
    free(l);
}

static void on_over(struct silt_follow_sink *sink, uint64_t cursor)
{
    (void)cursor;
    finish(silt_container_of(sink, struct listening, sink));
}

static void on_failed(struct silt_follow_sink *sink, const struct silt_error *e)
{
    (void)e;
    finish(silt_container_of(sink, struct listening, sink));
}

void silt_container_hear_last_words(struct silt_container *c, struct silt_process *p, int32_t code)
{
    if (code == 0 || silt_clock_wall_ms() - c->row.started_ms > SOON_MS)
        return;
    struct listening *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct listening){.all = c->all,
                            .process = p,
                            .sink = {.output = on_output, .gap = on_gap, .full = is_full, .over = on_over, .failed = on_failed},
                            .code = code};
    memcpy(l->sandbox, c->sandbox, sizeof(l->sandbox));
    silt_process_hold(p);
    struct silt_follow_options o = {.from_tail = true};
    (void)silt_follow_start(p, &o, &l->sink);
}

void silt_container_note_failure(struct silt_container *c, const struct silt_error *e)
{
    struct silt_last_words *w = take_place(c->all, c->sandbox);
    (void)snprintf(w->text, sizeof(w->text), "%.400s", e->text);
}
