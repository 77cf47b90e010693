/* SPDX-License-Identifier: Apache-2.0 */
#include "api/process/spool.h"
#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BUFFER_MAX = SILT_SPOOL_MEMORY + SILT_EXEC_WINDOW + SILT_FRAME_BODY_MAX,
    PIECE = 128 << 10,
};

/*   MEMORY --too much--> OPENING --two files--> FILES --failed--> BROKEN  */
enum state { MEMORY, OPENING, FILES, BROKEN };

struct stream {
    int fd;
    struct silt_buf waiting; /* not yet in the file */
    struct silt_buf storing; /* being written by the thread */
    uint64_t stored;         /* bytes in the file */
};

struct silt_spool {
    struct silt_loop *loop;       /* borrowed */
    struct silt_worker *worker;   /* borrowed */
    struct silt_priv_ask *priv;   /* borrowed */
    struct silt_sandbox *sandbox; /* borrowed, while there is a sink */
    struct silt_spool_sink *sink; /* borrowed; NULL: abandoned */
    enum state state;
    struct stream streams[2];
    bool ended, told;
    bool busy; /* a thread or silt-priv is working for it */
    struct silt_job job;
    struct silt_error error; /* of the job */
    bool failed;
    char *piece;
    int read_stream;
    uint64_t read_at;
    ssize_t read_len;
};

struct silt_spool *silt_spool_new(struct silt_sandbox *sandbox, struct silt_spool_sink *sink)
{
    struct silt_spool *s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->loop = sandbox->registry->loop;
    s->worker = sandbox->registry->worker;
    s->priv = sandbox->registry->priv;
    s->sandbox = sandbox;
    s->sink = sink;
    for (int i = 0; i < 2; i++) {
        s->streams[i].fd = -1;
        silt_buf_init(&s->streams[i].waiting, BUFFER_MAX);
        silt_buf_init(&s->streams[i].storing, BUFFER_MAX);
    }
    return s;
}

static void destroy(struct silt_spool *s)
{
    for (int i = 0; i < 2; i++) {
        silt_close_fd(&s->streams[i].fd);
        silt_buf_fini(&s->streams[i].waiting);
        silt_buf_fini(&s->streams[i].storing);
    }
    free(s->piece);
    free(s);
}

void silt_spool_free(struct silt_spool *s)
{
    if (s == NULL)
        return;
    s->sink = NULL;
    if (!s->busy)
        destroy(s);
}

/* True even after a failure, if not a byte was stored: the first bytes are still in memory. */
bool silt_spool_in_memory(const struct silt_spool *s)
{
    return s->state == MEMORY
           || (s->state == BROKEN && s->streams[0].stored == 0 && s->streams[1].stored == 0);
}

silt_slice silt_spool_memory(const struct silt_spool *s, int stream)
{
    return silt_buf_slice(&s->streams[stream - 1].waiting);
}

uint64_t silt_spool_size(const struct silt_spool *s, int stream)
{
    const struct stream *t = &s->streams[stream - 1];
    return silt_spool_in_memory(s) ? t->waiting.len : t->stored;
}

static void settle(struct silt_spool *s)
{
    if (s->told || s->sink == NULL)
        return;
    s->told = true;
    s->sink->settled(s->sink, s->failed ? &s->error : NULL);
}

static int store_all(struct stream *t, struct silt_error *e)
{
    size_t done = 0;
    while (done < t->storing.len) {
        ssize_t n = pwrite(t->fd, t->storing.data + done, t->storing.len - done, (off_t)t->stored);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return silt_fail_errno(e, "store the command's output in the sandbox's disk");
        done += (size_t)n;
        t->stored += (size_t)n; /* a partial write counts even if the rest does not fit */
    }
    return 0;
}

static void run_store(struct silt_job *j)
{
    struct silt_spool *s = silt_outer(j, struct silt_spool, job);
    for (int i = 0; i < 2; i++)
        if (store_all(&s->streams[i], &s->error) < 0) {
            s->failed = true;
            return;
        }
}

static void pump(struct silt_spool *s);

static void swap(struct stream *t)
{
    struct silt_buf full = t->waiting;
    t->waiting = t->storing;
    t->storing = full;
}

static void give_up(struct silt_spool *s)
{
    s->failed = true;
    s->state = BROKEN;
    settle(s);
}

static void on_stored(struct silt_job *j)
{
    struct silt_spool *s = silt_outer(j, struct silt_spool, job);
    size_t n = s->streams[0].storing.len + s->streams[1].storing.len;
    s->busy = false;
    if (s->sink == NULL) {
        destroy(s);
        return;
    }
    if (s->failed) {
        swap(&s->streams[0]); /* if nothing was stored, the response consists of the first bytes */
        swap(&s->streams[1]);
        give_up(s);
        return;
    }
    silt_buf_clear(&s->streams[0].storing);
    silt_buf_clear(&s->streams[1].storing);
    s->sink->stored(s->sink, n);
    pump(s);
}

static void pump(struct silt_spool *s)
{
    if (s->busy || s->state != FILES)
        return;
    if (s->streams[0].waiting.len + s->streams[1].waiting.len > 0) {
        swap(&s->streams[0]);
        swap(&s->streams[1]);
        s->busy = true;
        s->job = (struct silt_job){.run = run_store, .done = on_stored};
        silt_worker_submit(s->worker, &s->job);
    } else if (s->ended) {
        settle(s);
    }
}

static void open_next(struct silt_spool *s);

static void on_opened(void *context, const struct silt_priv_answer *a, int *fds, int nfds)
{
    struct silt_spool *s = context;
    s->busy = false;
    if (s->sink == NULL) {
        for (int i = 0; i < nfds; i++)
            silt_close_fd(&fds[i]);
        destroy(s);
        return;
    }
    if (!a->ok || nfds != 1) {
        if (a->ok)
            (void)silt_fail(&s->error, SILT_PROTOCOL, "silt-priv sent no spool file");
        else
            s->error = a->body.error;
        give_up(s);
        return;
    }
    s->streams[s->streams[0].fd < 0 ? 0 : 1].fd = fds[0];
    open_next(s);
}

static void open_next(struct silt_spool *s)
{
    if (s->streams[1].fd >= 0) {
        s->state = FILES;
        pump(s);
        return;
    }
    if (s->sandbox->phase == SILT_SANDBOX_IS_GONE) {
        /* The slot may belong to another sandbox by now. */
        (void)silt_fail(&s->error, SILT_GONE, "sandbox '%s' was destroyed", s->sandbox->row.id);
        give_up(s);
        return;
    }
    struct silt_priv_request q = {.op = SILT_PRIV_SPOOL, .slot = s->sandbox->row.slot};
    s->busy = true;
    silt_priv_ask(s->priv, &q, NULL, 0, on_opened, s);
}

void silt_spool_add(struct silt_spool *s, int stream, silt_slice bytes)
{
    if (s->state == BROKEN)
        return;
    silt_buf_add(&s->streams[stream - 1].waiting, bytes);
    if (s->state != MEMORY) {
        pump(s);
        return;
    }
    if (s->streams[0].waiting.len + s->streams[1].waiting.len <= SILT_SPOOL_MEMORY) {
        s->sink->stored(s->sink, bytes.len);
        return;
    }
    /* These bytes are credited when they reach a file. Earlier bytes were credited already, so
     * sink->stored may count them twice; the sink takes the smaller number. */
    s->state = OPENING;
    open_next(s);
}

void silt_spool_end(struct silt_spool *s)
{
    s->ended = true;
    if (s->state == MEMORY)
        settle(s);
    else
        pump(s);
}

static void run_read(struct silt_job *j)
{
    struct silt_spool *s = silt_outer(j, struct silt_spool, job);
    do
        s->read_len = pread(s->streams[s->read_stream - 1].fd, s->piece, PIECE, (off_t)s->read_at);
    while (s->read_len < 0 && errno == EINTR);
}

static void on_read(struct silt_job *j)
{
    struct silt_spool *s = silt_outer(j, struct silt_spool, job);
    s->busy = false;
    if (s->sink == NULL) {
        destroy(s);
        return;
    }
    s->sink->piece(s->sink, (silt_slice){s->piece, s->read_len > 0 ? (size_t)s->read_len : 0});
}

void silt_spool_read(struct silt_spool *s, int stream, uint64_t at)
{
    if (s->piece == NULL)
        s->piece = malloc(PIECE);
    if (s->piece == NULL)
        abort();
    s->read_stream = stream;
    s->read_at = at;
    s->busy = true;
    s->job = (struct silt_job){.run = run_read, .done = on_read};
    silt_worker_submit(s->worker, &s->job);
}
