/* SPDX-License-Identifier: Apache-2.0 */
/* last_words: the last output of a program that failed right after its start, shown as State.Error
 * of its container. workerd passes on only the exit code, which the npm client takes as a reason to
 * retry for two minutes. So a container whose control server is siltd does not end at once: for a
 * while it answers every request there with the last words. */
#include "sandbox/container/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/process/log_follower.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SOON_MS = 5000, /* after its start: a program that ran longer did start */
    TELL_MS = 5000, /* how long clients are told; then the next one restarts it */
    /* Shorter while no client has connected: one may be waiting for the end alone. */
    UNASKED_MS = 2000,
    TAIL_MAX = 300, /* bytes of output */
};

struct listening {
    struct silt_containers *all;  /* borrowed */
    struct silt_process *process; /* held */
    struct silt_log_follower_sink sink;
    char container[SILT_CONTAINER_ID_SIZE];
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
    const struct silt_last_words *w =
        c->spec.kind == SILT_CONTAINER_APP ? find(c->all, c->sandbox) : NULL;
    return w != NULL && (c->state == SILT_CONTAINER_IS_FAILED || !silt_container_runs(c)) ? w->text
                                                                                          : "";
}

void silt_container_forget_last_words(struct silt_container *c)
{
    struct silt_last_words *w = find(c->all, c->sandbox);
    if (w != NULL)
        *w = (struct silt_last_words){0};
}

/* Clients */

static bool stay(struct silt_container *c, int32_t code)
{
    if (!c->builtin || c->spec.sidecar.len == 0)
        return false;
    silt_container_enter(c, SILT_CONTAINER_IS_FAILED);
    c->leave_code = code;
    silt_loop_after(silt_container_loop(c), &c->stop, c->asked ? TELL_MS : UNASKED_MS);
    return true;
}

void silt_container_on_asked(struct silt_container *c)
{
    if (c->state == SILT_CONTAINER_IS_FAILED && !c->asked)
        silt_loop_after(silt_container_loop(c), &c->stop, TELL_MS);
    c->asked = true;
}

static void tell(struct silt_container *c)
{
    silt_log(SILT_LOG_WARN, "container.failed", "container=%.12s sandbox=%s error=\"%s\"",
             c->row.id, c->sandbox, silt_container_last_words(c));
    if (c->all->hooks.failed != NULL)
        c->all->hooks.failed(c->all->hooks.context, c);
}

bool silt_container_tell_failure(struct silt_container *c, int32_t code)
{
    if (!stay(c, code))
        return false;
    silt_container_tell_start(c);
    tell(c);
    return true;
}

/* Its output */

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct listening *l = silt_outer(sink, struct listening, sink);
    silt_slice bytes = piece->bytes;
    if (bytes.len > TAIL_MAX)
        bytes = (silt_slice){bytes.data + bytes.len - TAIL_MAX, TAIL_MAX};
    size_t drop = l->len + bytes.len > TAIL_MAX ? l->len + bytes.len - TAIL_MAX : 0;
    memmove(l->tail, l->tail + drop, l->len - drop);
    memcpy(l->tail + l->len - drop, bytes.data, bytes.len);
    l->len = l->len - drop + bytes.len;
}

static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    (void)sink;
    (void)bytes;
    (void)why;
    (void)cursor;
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    (void)sink;
    return false;
}

static void finish(struct listening *l)
{
    struct silt_container *c = silt_container_find(l->all, silt_slice_of(l->container));
    struct silt_last_words *w = take_place(l->all, l->sandbox);
    while (l->len > 0 && (unsigned char)l->tail[l->len - 1] <= ' ')
        l->len--;
    silt_error_show(l->tail, l->len);
    (void)snprintf(w->text, sizeof(w->text), "its program ended at once with code %d%s%.*s",
                   (int)l->code, l->len > 0 ? "; its last words: " : "", (int)l->len, l->tail);
    if (c != NULL && c->state == SILT_CONTAINER_IS_FAILED && c->said == l->process)
        tell(c);
    silt_process_release(l->process);
    free(l);
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    (void)cursor;
    finish(silt_outer(sink, struct listening, sink));
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    (void)e;
    finish(silt_outer(sink, struct listening, sink));
}

bool silt_container_hear_last_words(struct silt_container *c, struct silt_process *p, int32_t code)
{
    if (c->state != SILT_CONTAINER_IS_RUNNING || code == 0
        || silt_clock_wall_ms() - c->row.started_ms > SOON_MS)
        return false;
    struct listening *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct listening){.all = c->all,
                            .process = p,
                            .sink = {.output = on_output,
                                     .gap = on_gap,
                                     .full = is_full,
                                     .over = on_over,
                                     .failed = on_failed},
                            .code = code};
    memcpy(l->container, c->row.id, sizeof(l->container));
    memcpy(l->sandbox, c->sandbox, sizeof(l->sandbox));
    silt_process_hold(p);
    struct silt_log_follower_options o = {.from_tail = true};
    (void)silt_log_follower_start(p, &o, &l->sink);
    return stay(c, code);
}

void silt_container_note_failure(struct silt_container *c, const struct silt_error *e)
{
    struct silt_last_words *w = take_place(c->all, c->sandbox);
    (void)snprintf(w->text, sizeof(w->text), "%.400s", e->text);
    silt_error_show(w->text, strlen(w->text)); /* an image has named the program */
}
