/* SPDX-License-Identifier: Apache-2.0 */
/* export: silt-fetch packs the image in a jail that contains nothing else; siltd passes the bytes
 * on as fast as they are taken. */
#include "base/fd.h"
#include "sandbox/image/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ORDER_SIZE = 512 << 10, /* more than SILT_IMAGE_CONFIG_MAX */
    PIPE_SIZE = 1 << 20,
    PIECE_MAX = 128 << 10,
    EXPORTS_MAX = 4,
    STALL_MS = 30 * 60 * 1000, /* a tree is read once before the first byte */
};

/*   FLOWING --end of the archive--> ENDED --result--> OVER */
enum state { FLOWING, ENDED, OVER };

struct silt_export {
    struct silt_image *image; /* held until finished */
    struct silt_registry *registry;
    struct silt_export_sink *sink; /* borrowed */
    enum state state;
    bool asked; /* silt-priv has not answered yet */
    struct silt_watch archive, result;
    struct silt_timer stall;
    struct silt_grave grave;
};

static void free_export(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_export, grave));
}

static void close_watch(struct silt_export *x, struct silt_watch *w)
{
    silt_loop_forget(x->registry->loop, w);
    silt_close_fd(&w->fd);
}

static void leave(struct silt_export *x)
{
    x->state = OVER;
    close_watch(x, &x->archive); /* silt-fetch exits when its reader is gone */
    close_watch(x, &x->result);
    silt_loop_cancel(x->registry->loop, &x->stall);
    x->registry->exports--;
    silt_image_release(x->image);
    x->image = NULL;
    if (!x->asked)
        silt_loop_bury(x->registry->loop, &x->grave);
}

static void finish(struct silt_export *x, const struct silt_error *e)
{
    struct silt_export_sink *sink = x->sink;
    leave(x);
    sink->done(sink, e);
}

void silt_export_abort(struct silt_export *x)
{
    if (x->state != OVER)
        leave(x);
}

void silt_export_pause(struct silt_export *x, bool paused)
{
    if (x->state == FLOWING)
        silt_loop_watch(x->registry->loop, &x->archive, paused ? 0 : EPOLLIN);
}

static void on_archive(struct silt_watch *w, uint32_t events)
{
    static char piece[PIECE_MAX];
    struct silt_export *x = silt_outer(w, struct silt_export, archive);
    (void)events;
    ssize_t n = read(w->fd, piece, sizeof(piece));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    silt_loop_after(x->registry->loop, &x->stall, STALL_MS);
    if (n > 0) {
        x->sink->bytes(x->sink, (silt_slice){piece, (size_t)n});
        return;
    }
    x->state = ENDED;
    close_watch(x, &x->archive);
    silt_loop_watch(x->registry->loop, &x->result, EPOLLIN);
}

/* Evaluated once the archive is complete. */
static void on_result(struct silt_watch *w, uint32_t events)
{
    struct silt_export *x = silt_outer(w, struct silt_export, result);
    struct silt_fetch_result result;
    struct silt_error e = {0};
    (void)events;
    ssize_t n = read(w->fd, &result, sizeof(result));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof(result) && result.ok) {
        finish(x, NULL);
        return;
    }
    (void)silt_fail(&e, SILT_INTERNAL, "silt-fetch ended without a result");
    if (n == (ssize_t)sizeof(result)) {
        e = result.error;
        e.text[sizeof(e.text) - 1] = 0;
        silt_error_show(e.text, strlen(e.text));
        if (e.code == SILT_OK || (unsigned)e.code >= SILT_CODE_MAX)
            e.code = SILT_INTERNAL;
    }
    (void)silt_because(&e, "pack image");
    finish(x, &e);
}

static void on_stall(struct silt_timer *t)
{
    struct silt_export *x = silt_outer(t, struct silt_export, stall);
    struct silt_error e;
    (void)silt_fail(&e, SILT_TIMEOUT, "pack image: nothing moved for 30 minutes");
    finish(x, &e);
}

static void on_started(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_export *x = context;
    for (int k = 0; k < nfds; k++)
        silt_close_fd(&fds[k]); /* its pipes report its end */
    x->asked = false;
    if (x->state == OVER)
        silt_loop_bury(x->registry->loop, &x->grave);
    else if (!a->ok)
        finish(x, &a->body.error);
}

/* Writes everything at once, into a pipe with room for it: it has no reader yet. */
static int fill_pipe(int to, const struct silt_fetch_order *order, silt_slice config,
                     struct silt_error *e)
{
    (void)fcntl(to, F_SETPIPE_SZ, ORDER_SIZE); /* most orders fit without */
    if (silt_fd_nonblock(to, e) < 0
        || silt_fd_write_all(to, (silt_slice){(const char *)order, sizeof(*order)}, e) < 0)
        return -1;
    return silt_fd_write_all(to, config, e);
}

static int write_order(const struct silt_image *image, const struct silt_export_options *o,
                       int *ret_fd, struct silt_error *e)
{
    struct silt_fetch_order order = {.kind = SILT_FETCH_PACK,
                                     .format = o->format,
                                     .config_size = (uint32_t)strlen(image->row.config),
                                     .created_s = image->row.created_ms / 1000};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create pipe");
    silt_auto_fd reads = ends[0], writes = ends[1];
    (void)snprintf(order.image, sizeof(order.image), "%s", o->name);
    if (fill_pipe(writes, &order, silt_slice_of(image->row.config), e) < 0)
        return silt_because(e, "pack image");
    *ret_fd = silt_take_fd(&reads);
    return 0;
}

/* Our end is [0], non-blocking. */
static int open_pipe(int ends[2], struct silt_error *e)
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create pipe");
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE); /* smaller is only slower */
    return silt_fd_nonblock(ends[0], e);
}

static struct silt_export *new_export(struct silt_image *image, struct silt_export_sink *sink,
                                      int archive, int result)
{
    struct silt_export *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    *x = (struct silt_export){.image = image,
                              .registry = image->registry,
                              .sink = sink,
                              .asked = true,
                              .archive = {.fd = archive, .on_ready = on_archive},
                              .result = {.fd = result, .on_ready = on_result},
                              .stall = {.on_time = on_stall},
                              .grave = {.free = free_export}};
    silt_image_hold(image);
    x->registry->exports++;
    silt_loop_watch(x->registry->loop, &x->archive, EPOLLIN);
    silt_loop_after(x->registry->loop, &x->stall, STALL_MS);
    return x;
}

int silt_export_start(struct silt_image *image, const struct silt_export_options *o,
                      struct silt_export_sink *sink, struct silt_export **ret, struct silt_error *e)
{
    struct silt_registry *r = image->registry;
    int archive[2] = {-1, -1}, result[2] = {-1, -1}, order = -1;
    if (r->exports >= EXPORTS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d images are being exported already", EXPORTS_MAX);
    if (open_pipe(archive, e) < 0 || open_pipe(result, e) < 0
        || write_order(image, o, &order, e) < 0) {
        for (int k = 0; k < 2; k++) {
            silt_close_fd(&archive[k]);
            silt_close_fd(&result[k]);
        }
        return -1;
    }
    struct silt_export *x = new_export(image, sink, archive[0], result[0]);
    struct silt_priv_request q = {.op = SILT_PRIV_EXPORT};
    memcpy(q.body.import.digest, silt_image_files(image), SILT_DIGEST_SIZE);
    silt_priv_ask(r->priv, &q, (int[]){order, archive[1], result[1]}, 3, on_started, x);
    *ret = x;
    return 0;
}
