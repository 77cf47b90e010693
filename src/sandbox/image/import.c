/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/image/import.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sandbox/core/sandbox.h"
#include "sandbox/core/facet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PIPE_SIZE = 1 << 20,
    WAITING_MAX = 1 << 20,
    FETCH_DEADLINE_MS = 30 * 60 * 1000,
    NAMES_MAX = 16,
    NAMES_TEXT_MAX = NAMES_MAX * SILT_IMAGE_NAME_SIZE,
    CONFIG_ARENA_MAX = 16 << 20,
};

/*   FEEDING --end--> UNPACKING --result--> COMMITTING --done--> OVER
 *                         \--its files are being removed--> HELD --gone--> COMMITTING */
enum state { FEEDING, UNPACKING, HELD, COMMITTING, OVER };

struct silt_import {
    struct silt_registry *registry; /* borrowed */
    struct silt_link link;          /* in registry->imports until finished */
    struct silt_import_sink *sink;  /* borrowed; NULL: aborted */
    enum state state;
    uint32_t asks; /* unanswered requests to silt-priv */
    uint32_t staging;
    struct silt_watch feed;   /* write end of the tar pipe */
    struct silt_watch result; /* read end of the result pipe */
    struct silt_timer deadline;
    struct silt_buf waiting; /* bytes the pipe had no room for */
    struct silt_fetch_result answer;
    bool answered;        /* the result is there; the configuration may still follow */
    struct silt_buf said; /* from the image: its configuration, then its names */
    char names[NAMES_MAX][SILT_IMAGE_NAME_SIZE];
    size_t name_count; /* 0: the archive's own */
    char *config;      /* NULL: unchanged */
    bool host_usr;
    bool unnamed; /* ignore its names */
    struct silt_grave grave;
};

static void commit(struct silt_import *i);

static bool publishes(const struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    silt_list_each(it, &r->imports)
    {
        const struct silt_import *i = silt_outer(it, struct silt_import, link);
        if ((i->state == COMMITTING || i->state == HELD)
            && memcmp(i->answer.digest, digest, SILT_DIGEST_SIZE) == 0)
            return true;
    }
    return false;
}

static void on_forgotten(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE])
{
    silt_list_each(it, &r->imports)
    {
        struct silt_import *i = silt_outer(it, struct silt_import, link);
        if (i->state == HELD && memcmp(i->answer.digest, digest, SILT_DIGEST_SIZE) == 0)
            commit(i);
    }
}

static void free_import(struct silt_grave *g)
{
    struct silt_import *i = silt_outer(g, struct silt_import, grave);
    silt_buf_fini(&i->waiting);
    silt_buf_fini(&i->said);
    free(i->config);
    free(i);
}

static void close_watch(struct silt_import *i, struct silt_watch *w)
{
    silt_loop_forget(i->registry->loop, w);
    silt_close_fd(&w->fd);
}

static void discard(struct silt_import *i);

static void on_discarded(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_import *i = context;
    (void)fds;
    (void)nfds;
    i->asks--;
    if (!a->ok && a->body.error.code == SILT_INTERRUPTED) {
        discard(i);
        return;
    }
    if (!a->ok)
        silt_log(SILT_LOG_WARN, "image.discard", "error=%s", a->body.error.text);
    i->registry->stagings &= ~(1U << i->staging);
    silt_loop_bury(i->registry->loop, &i->grave);
}

static void ask(struct silt_import *i, const struct silt_priv_request *q, const int *fds, int nfds,
                silt_priv_answered *on_answer)
{
    i->asks++;
    silt_priv_ask(i->registry->priv, q, fds, nfds, on_answer, i);
}

/* Last, with no other request in flight: silt-priv's workers do not wait for each other. */
static void discard(struct silt_import *i)
{
    struct silt_priv_request q = {.op = SILT_PRIV_DISCARD, .body.import.staging = i->staging};
    if (i->asks == 0)
        ask(i, &q, NULL, 0, on_discarded);
}

static void finish(struct silt_import *i, const struct silt_image *image,
                   const struct silt_error *e)
{
    struct silt_import_sink *sink = i->sink;
    if (i->state == OVER)
        return;
    i->state = OVER;
    i->sink = NULL;
    silt_list_remove(&i->link);
    close_watch(i, &i->feed);
    close_watch(i, &i->result);
    silt_loop_cancel(i->registry->loop, &i->deadline);
    if (sink != NULL && image == NULL) {
        sink->failed(sink, e);
    } else if (sink != NULL) {
        sink->left_out = i->answer.left_out;
        sink->done(sink, image, i->names[0]);
    }
    discard(i);
}

/* The image of these files, or one with another configuration for them. */
static int publish(struct silt_import *i, struct silt_image **ret, struct silt_error *e)
{
    struct silt_registry *r = i->registry;
    struct silt_image *image = silt_image_by_digest(r, i->answer.digest);
    const char *config = i->config != NULL ? i->config : "{}";
    if (image == NULL) {
        struct silt_image_row row = {.host_usr = i->host_usr,
                                     .bytes = i->answer.bytes,
                                     .created_ms = silt_clock_wall_ms(),
                                     .config = strdup(config)};
        memcpy(row.digest, i->answer.digest, sizeof(row.digest));
        if (silt_image_new(r, &row, &image, e) < 0)
            return -1;
    } else if (silt_image_derive(image, i->config != NULL ? config : image->row.config, i->host_usr,
                                 &image, e)
               < 0) {
        return -1;
    }
    for (size_t n = 0; n < i->name_count; n++)
        if (silt_image_tag(r, image, i->names[n], e) < 0)
            return -1;
    *ret = image;
    return 0;
}

static void on_committed(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_import *i = context;
    struct silt_image *image = NULL;
    struct silt_error e = {0};
    (void)fds;
    (void)nfds;
    i->asks--;
    if (!a->ok)
        e = a->body.error;
    if (!a->ok || publish(i, &image, &e) < 0) {
        finish(i, NULL, &e);
        silt_image_forget_unused(
            i->registry, i->answer.digest); /* a removal meanwhile was deferred because of us */
        return;
    }
    i->registry->ready.failed = false;
    silt_ready_pool_refill_soon(i->registry);
    finish(i, image, NULL);
}

static void commit(struct silt_import *i)
{
    struct silt_priv_request q = {.op = SILT_PRIV_COMMIT, .body.import.staging = i->staging};
    i->state = COMMITTING;
    memcpy(q.body.import.digest, i->answer.digest, SILT_DIGEST_SIZE);
    ask(i, &q, NULL, 0, on_committed);
}

static void is_unpacked(struct silt_import *i)
{
    close_watch(i, &i->feed);
    close_watch(i, &i->result);
    silt_loop_cancel(i->registry->loop, &i->deadline); /* requests to silt-priv have their own */
    if (silt_image_is_forgotten(i->registry, i->answer.digest))
        i->state = HELD; /* continued by on_forgotten */
    else
        commit(i);
}

/* Refuses a digest that belongs to an image with another kind of files: silt-fetch computes it and
 * may have been compromised by the archive. */
static bool has_fit_digest(const struct silt_import *i)
{
    static const uint8_t none[SILT_DIGEST_SIZE];
    const struct silt_image *there = silt_image_by_digest(i->registry, i->answer.digest);
    return memcmp(i->answer.digest, none, sizeof(none)) != 0
           && (there == NULL || (!there->row.layered && there->parent == NULL));
}

/* "unpack image x: why". No name is known before the archive gives one. */
static void fail(struct silt_import *i, struct silt_error *e)
{
    if (i->name_count > 0)
        (void)silt_because(e, "unpack image %s", i->names[0]);
    else
        (void)silt_because(e, "unpack image");
    finish(i, NULL, e);
}

/* Only images that we built or that a caller vouches for may have these labels: served by siltd, or
 * with limits of their own. */
static void drop_own_labels(struct silt_image_config *c)
{
    size_t kept = 0;
    for (size_t n = 0; n < c->label_count; n++)
        if (!silt_slice_starts(c->labels[n].name, SILT_LIT("silt.")))
            c->labels[kept++] = c->labels[n];
    c->label_count = kept;
}

static int take_config(struct silt_import *i, struct silt_error *e)
{
    silt_auto_arena a = {0};
    silt_auto_buf b = {0};
    struct silt_image_config c;
    if (i->answer.config_size == 0 || i->config != NULL)
        return 0;
    silt_arena_init(&a, CONFIG_ARENA_MAX);
    silt_buf_init(&b, SILT_IMAGE_CONFIG_MAX);
    if (silt_image_config_read(&a, (silt_slice){i->said.data, i->answer.config_size}, &c, e) < 0)
        return -1;
    drop_own_labels(&c);
    silt_image_config_write(&b, &c);
    silt_buf_add_byte(&b, 0);
    if (b.broken)
        return silt_fail(e, SILT_LIMIT, "image configuration of more than %d bytes",
                         SILT_IMAGE_CONFIG_MAX);
    i->config = strdup(b.data);
    if (i->config == NULL)
        abort();
    return 0;
}

static int take_names(struct silt_import *i, struct silt_error *e)
{
    silt_slice rest = {NULL, 0}, name;
    if (i->name_count > 0 || i->unnamed)
        return 0;
    if (i->answer.names_size > 0)
        rest = (silt_slice){i->said.data + i->answer.config_size, i->answer.names_size};
    while (i->name_count < NAMES_MAX && silt_slice_split(&rest, '\n', &name))
        if (silt_reference_read(name, i->names[i->name_count], e) == 0
            && !silt_image_is_reserved(i->registry, i->names[i->name_count]))
            i->name_count++;
    if (i->name_count == 0)
        return silt_fail(e, SILT_INVALID,
                         "the archive tells no name of the image that it may have: give it one");
    return 0;
}

/* *ret_whole: everything announced has arrived. */
static int read_said(struct silt_import *i, bool *ret_whole, struct silt_error *e)
{
    size_t total = (size_t)i->answer.config_size + i->answer.names_size;
    *ret_whole = i->said.len == total;
    if (*ret_whole)
        return 0;
    if (i->answer.config_size > SILT_IMAGE_CONFIG_MAX || i->answer.names_size > NAMES_TEXT_MAX)
        return silt_fail(e, SILT_PROTOCOL, "silt-fetch tells of %zu bytes", total);
    char *room = silt_buf_room(&i->said, total - i->said.len);
    if (room == NULL)
        abort();
    ssize_t n = read(i->result.fd, room, total - i->said.len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return silt_fail(e, SILT_INTERNAL, "silt-fetch ended before it had told all");
    i->said.len += (size_t)n;
    *ret_whole = i->said.len == total;
    return 0;
}

static int read_answer(struct silt_import *i, struct silt_error *e)
{
    ssize_t n = read(i->result.fd, &i->answer, sizeof(i->answer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n != (ssize_t)sizeof(i->answer))
        return silt_fail(e, SILT_INTERNAL, "silt-fetch ended without a result");
    if (!i->answer.ok) {
        *e = i->answer.error;
        e->text[sizeof(e->text) - 1] = 0;
        silt_error_show(e->text, strlen(e->text));
        if (e->code == SILT_OK || (unsigned)e->code >= SILT_CODE_MAX)
            e->code = SILT_INVALID;
        return -1;
    }
    if (i->state == FEEDING)
        return silt_fail(e, SILT_PROTOCOL, "result before the end of the stream");
    if (!has_fit_digest(i))
        return silt_fail(e, SILT_PROTOCOL, "a digest that is none of a tree");
    i->answered = true;
    return 0;
}

static void on_result(struct silt_watch *w, uint32_t events)
{
    struct silt_import *i = silt_outer(w, struct silt_import, result);
    struct silt_error e = {0};
    bool whole = false;
    (void)events;
    int got = i->answered ? 0 : read_answer(i, &e);
    if (got == 0 && i->answered)
        got = read_said(i, &whole, &e);
    if (got == 0 && whole && (got = take_config(i, &e)) == 0)
        got = take_names(i, &e);
    if (got < 0)
        fail(i, &e);
    else if (whole)
        is_unpacked(i);
}

static void on_deadline(struct silt_timer *t)
{
    struct silt_import *i = silt_outer(t, struct silt_import, deadline);
    struct silt_error e;
    (void)silt_fail(&e, SILT_TIMEOUT, "not done after 30 minutes");
    fail(i, &e);
}

static void pump(struct silt_import *i)
{
    while (i->waiting.len > 0) {
        ssize_t n = write(i->feed.fd, i->waiting.data, i->waiting.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            silt_loop_watch(i->registry->loop, &i->feed, EPOLLOUT);
            return;
        }
        if (n < 0) { /* silt-fetch has exited: its result says why */
            silt_buf_clear(&i->waiting);
            break;
        }
        silt_buf_drop(&i->waiting, (size_t)n);
    }
    silt_loop_watch(i->registry->loop, &i->feed, 0);
    if (i->state == UNPACKING)
        close_watch(i, &i->feed);
}

static void on_feedable(struct silt_watch *w, uint32_t events)
{
    struct silt_import *i = silt_outer(w, struct silt_import, feed);
    (void)events;
    pump(i);
    if (i->waiting.len == 0 && i->state == FEEDING && i->sink != NULL)
        i->sink->drained(i->sink);
}

bool silt_import_feed(struct silt_import *i, silt_slice bytes)
{
    if (i->state != FEEDING || i->feed.fd < 0)
        return true;
    silt_buf_add(&i->waiting, bytes);
    pump(i);
    return i->waiting.len == 0;
}

void silt_import_end(struct silt_import *i)
{
    if (i->state != FEEDING)
        return;
    i->state = UNPACKING;
    pump(i);
}

void silt_import_abort(struct silt_import *i)
{
    struct silt_error e;
    i->sink = NULL;
    (void)silt_fail(&e, SILT_GONE, "the sender went away");
    if (i->state != COMMITTING)
        finish(i, NULL, &e);
}

static void on_import_started(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_import *i = context;
    for (int k = 0; k < nfds; k++)
        silt_close_fd(&fds[k]);
    i->asks--;
    if (i->state == OVER)
        discard(i);
    else if (!a->ok && i->state < HELD)
        finish(i, NULL, &a->body.error);
}

static int take_staging(struct silt_registry *r, uint32_t *ret, struct silt_error *e)
{
    for (uint32_t n = 0; n < SILT_STAGINGS_MAX; n++)
        if ((r->stagings & 1U << n) == 0) {
            r->stagings |= 1U << n;
            *ret = n;
            return 0;
        }
    return silt_fail(e, SILT_LIMIT, "%d images are being imported already", SILT_STAGINGS_MAX);
}

/* The pipe is empty, so it fits. */
static void give_order(struct silt_import *i, const struct silt_import_options *o)
{
    struct silt_fetch_order order = {.format = o->format};
    if (o->image != NULL)
        (void)snprintf(order.image, sizeof(order.image), "%s", o->image);
    if (write(i->feed.fd, &order, sizeof(order)) != (ssize_t)sizeof(order))
        abort();
}

int silt_import_start(struct silt_registry *r, const struct silt_import_options *o,
                      struct silt_import_sink *sink, struct silt_import **ret, struct silt_error *e)
{
    int tar[2], result[2];
    uint32_t staging = 0;
    if (pipe2(tar, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create pipe");
    if (pipe2(result, O_CLOEXEC) < 0) {
        (void)silt_fail_errno(e, "create pipe");
        (void)close(tar[0]);
        (void)close(tar[1]);
        return -1;
    }
    if (take_staging(r, &staging, e) < 0) {
        for (int k = 0; k < 2; k++) {
            (void)close(tar[k]);
            (void)close(result[k]);
        }
        return -1;
    }
    (void)fcntl(tar[1], F_SETPIPE_SZ, PIPE_SIZE);
    (void)silt_fd_nonblock(tar[1], e);
    (void)silt_fd_nonblock(result[0], e);
    struct silt_import *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    *i = (struct silt_import){.registry = r,
                              .sink = sink,
                              .staging = staging,
                              .feed = {.fd = tar[1], .on_ready = on_feedable},
                              .result = {.fd = result[0], .on_ready = on_result},
                              .deadline = {.on_time = on_deadline},
                              .host_usr = o->host_usr,
                              .unnamed = o->unnamed,
                              .config = o->config != NULL ? strdup(o->config) : NULL,
                              .grave = {.free = free_import}};
    if (o->config != NULL && i->config == NULL)
        abort();
    if (o->name != NULL)
        (void)snprintf(i->names[i->name_count++], SILT_IMAGE_NAME_SIZE, "%s", o->name);
    silt_buf_init(&i->waiting, WAITING_MAX);
    silt_buf_init(&i->said, SILT_IMAGE_CONFIG_MAX + NAMES_TEXT_MAX);
    give_order(i, o);
    silt_list_append(&r->imports, &i->link);
    silt_loop_watch(r->loop, &i->result, EPOLLIN);
    silt_loop_after(r->loop, &i->deadline, FETCH_DEADLINE_MS);
    *ret = i;
    struct silt_priv_request q = {.op = SILT_PRIV_IMPORT, .body.import.staging = staging};
    ask(i, &q, (int[]){tar[0], result[1]}, 2, on_import_started);
    return 0;
}

const struct silt_facet silt_import_facet = {.needs_files = publishes,
                                             .on_files_gone = on_forgotten};
