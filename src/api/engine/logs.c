/* SPDX-License-Identifier: Apache-2.0 */
/* …/logs and …/attach: the output of a container's program in Docker's frames. Attaching before the
 * start waits for it. A container that runs no program of its own has no output: attaching to it
 * waits for its end.
 *
 *   WAITING (for its start) --> COUNTING (lines, for ?tail=) --> READING --> over
 *                         \---> IDLE (it has no program) --its end--> over */
#include "api/engine/engine.h"
#include "sandbox/process/log_follower.h"
#include "sandbox/core/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum state { WAITING, COUNTING, READING, IDLE };

struct reading {
    struct silt_engine *engine;        /* borrowed */
    struct silt_http_request *request; /* borrowed */
    char container[SILT_CONTAINER_ID_SIZE];
    enum state state;
    struct silt_container_ask ask;   /* for its start */
    struct silt_container_wait wait; /* for its end */
    struct silt_process *process;    /* held; NULL: none yet */
    struct silt_log_follower *follow;
    struct silt_log_follower_sink sink;
    bool streams[2], follows, timestamps;
    bool broken_line[2]; /* the last output of the stream had no newline */
    uint64_t tail;       /* lines requested; UINT64_MAX: all */
    uint64_t lines, skip;
    int64_t since_ms, until_ms;
};

static struct reading *of(struct silt_log_follower_sink *sink)
{
    return silt_outer(sink, struct reading, sink);
}

static struct silt_http_request *leave(struct reading *t)
{
    struct silt_http_request *r = t->request;
    struct silt_container *c = silt_container_find(t->engine->all, silt_slice_of(t->container));
    silt_container_ask_leave(&t->ask);
    if (t->wait.container != NULL)
        silt_container_wait_leave(&t->wait);
    if (t->follow != NULL)
        silt_log_follower_stop(t->follow);
    if (t->process != NULL)
        silt_process_release(t->process);
    r->on_gone = NULL;
    r->on_drain = NULL;
    free(t);
    if (c != NULL)
        silt_container_read_end(c);
    return r;
}

static void on_gone(struct silt_http_request *r)
{
    (void)leave(r->owner);
}

static void end(struct reading *t)
{
    silt_http_end(leave(t));
}

static void on_drain(struct silt_http_request *r)
{
    struct reading *t = r->owner;
    if (t->follow != NULL)
        silt_log_follower_resume(t->follow);
}

static bool is_full(struct silt_log_follower_sink *sink)
{
    return of(sink)->state == READING && silt_http_pending(of(sink)->request) >= SILT_HTTP_MARK;
}

static void write_frame(struct reading *t, unsigned stream, silt_slice bytes)
{
    unsigned char head[8] = {(unsigned char)stream,
                             0,
                             0,
                             0,
                             (unsigned char)(bytes.len >> 24),
                             (unsigned char)(bytes.len >> 16),
                             (unsigned char)(bytes.len >> 8),
                             (unsigned char)bytes.len};
    if (bytes.len == 0)
        return;
    silt_http_write(t->request, (silt_slice){(char *)head, sizeof(head)});
    silt_http_write(t->request, bytes);
}

static void write_time(struct silt_buf *b, int64_t ms)
{
    struct tm tm;
    time_t s = (time_t)(ms / 1000);
    char text[32];
    (void)gmtime_r(&s, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    silt_buf_addf(b, "%s.%03d000000Z ", text, (int)(ms % 1000));
}

/* Sends each line in a frame of its own. */
static void write_lines(struct reading *t, unsigned stream, const struct silt_log_reader_piece *p)
{
    silt_slice rest = p->bytes;
    while (rest.len > 0) {
        const char *end = memchr(rest.data, '\n', rest.len);
        size_t len = end != NULL ? (size_t)(end - rest.data) + 1 : rest.len;
        silt_auto_buf b;
        silt_buf_init(&b, SILT_LOG_BATCH + 64);
        if (!t->broken_line[stream])
            write_time(&b, p->time_ms);
        silt_buf_add(&b, (silt_slice){rest.data, len});
        write_frame(t, stream + 1, silt_buf_slice(&b));
        t->broken_line[stream] = end == NULL;
        rest = (silt_slice){rest.data + len, rest.len - len};
    }
}

/* The rest of a piece after skipping the lines before the requested ones. */
static silt_slice skip_lines(struct reading *t, silt_slice bytes)
{
    const char *end;
    while (t->skip > 0 && bytes.len > 0 && (end = memchr(bytes.data, '\n', bytes.len)) != NULL) {
        size_t len = (size_t)(end - bytes.data) + 1;
        bytes = (silt_slice){bytes.data + len, bytes.len - len};
        t->skip--;
    }
    return t->skip > 0 ? (silt_slice){NULL, 0} : bytes;
}

static void count_lines(struct reading *t, unsigned stream, silt_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        t->lines += bytes.data[i] == '\n';
    if (bytes.len > 0)
        t->broken_line[stream] = bytes.data[bytes.len - 1] != '\n';
}

static void on_output(struct silt_log_follower_sink *sink,
                      const struct silt_log_reader_piece *piece)
{
    struct reading *t = of(sink);
    struct silt_log_reader_piece p = *piece;
    unsigned stream = p.stream == SILT_LOG_STDERR;
    if (!t->streams[stream] || p.time_ms < t->since_ms
        || (t->until_ms > 0 && p.time_ms > t->until_ms))
        return;
    if (t->state == COUNTING) {
        count_lines(t, stream, p.bytes);
        return;
    }
    p.bytes = skip_lines(t, p.bytes);
    if (t->timestamps)
        write_lines(t, stream, &p);
    else
        write_frame(t, stream + 1, p.bytes);
}

static void on_gap(struct silt_log_follower_sink *sink, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    char text[96];
    (void)cursor;
    (void)why;
    (void)snprintf(text, sizeof(text), "[%llu bytes are not kept]\n", (unsigned long long)bytes);
    if (of(sink)->state == READING && of(sink)->skip == 0)
        write_frame(of(sink), 2, silt_slice_of(text));
}

static void read_from(struct reading *t, enum state state, struct silt_log_follower_options o)
{
    t->state = state;
    t->follow = silt_log_follower_start(t->process, &o, &t->sink);
}

static void on_over(struct silt_log_follower_sink *sink, uint64_t cursor)
{
    struct reading *t = of(sink);
    t->follow = NULL;
    if (t->state != COUNTING) {
        end(t);
        return;
    }
    uint64_t lines = t->lines + t->broken_line[0] + t->broken_line[1];
    t->skip = lines > t->tail ? lines - t->tail : 0;
    memset(t->broken_line, 0, sizeof(t->broken_line));
    if (lines == 0 && !t->follows)
        end(t);
    else
        read_from(t, READING,
                  (struct silt_log_follower_options){.from_tail = true,
                                                     .snapshot = !t->follows,
                                                     .until = t->follows ? 0 : cursor});
}

static void on_failed(struct silt_log_follower_sink *sink, const struct silt_error *e)
{
    struct reading *t = of(sink);
    t->follow = NULL;
    write_frame(t, 2, silt_slice_of(e->text));
    write_frame(t, 2, SILT_LIT("\n"));
    end(t);
}

static void on_ended(struct silt_container_wait *w, int32_t code)
{
    struct reading *t = silt_outer(w, struct reading, wait);
    (void)code;
    t->wait.container = NULL;
    end(t);
}

/* Called when the container runs or has run. */
static void begin(struct reading *t, struct silt_container *c)
{
    int32_t code;
    t->process = silt_container_output(c);
    if (t->process == NULL) {
        t->state = IDLE;
        if (!t->follows || silt_container_wait(c, &t->wait, &code)) {
            t->wait.container = NULL;
            end(t);
        }
        return;
    }
    silt_process_hold(t->process);
    bool counts = t->tail != UINT64_MAX;
    read_from(
        t, counts ? COUNTING : READING,
        (struct silt_log_follower_options){.from_tail = true, .snapshot = counts || !t->follows});
}

static void on_started(struct silt_container_ask *a, const struct silt_error *e)
{
    struct reading *t = silt_outer(a, struct reading, ask);
    struct silt_container *c = silt_container_find(t->engine->all, silt_slice_of(t->container));
    if (e != NULL || c == NULL)
        end(t);
    else
        begin(t, c);
}

static struct reading *new_reading(struct silt_http_request *r, struct silt_container *c)
{
    struct reading *t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    *t = (struct reading){
        .engine = silt_engine_of(r),
        .request = r,
        .ask = {.on_done = on_started},
        .wait = {.on_done = on_ended},
        .sink = {.output = on_output,
                 .gap = on_gap,
                 .full = is_full,
                 .over = on_over,
                 .failed = on_failed},
        .tail = UINT64_MAX,
        .streams = {silt_engine_query_bool(r, "stdout"), silt_engine_query_bool(r, "stderr")}};
    memcpy(t->container, c->row.id, sizeof(t->container));
    silt_list_init(&t->ask.link);
    silt_container_read_begin(c);
    r->owner = t;
    r->on_gone = on_gone;
    r->on_drain = on_drain;
    return t;
}

/* In seconds, with an optional fraction. */
static int64_t time_of(struct silt_http_request *r, const char *name)
{
    char text[32];
    struct silt_error e;
    silt_slice v = silt_engine_query(r, name);
    return v.len > 0 && silt_slice_to_cstr(v, text, sizeof(text), &e) == 0
               ? (int64_t)(strtod(text, NULL) * 1000)
               : 0;
}

SILT_HANDLER(silt_engine_container_logs)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    struct silt_error e;
    if (c == NULL)
        return;
    if (!silt_engine_query_bool(r, "stdout") && !silt_engine_query_bool(r, "stderr")) {
        silt_engine_refuse(r, 400, "Bad parameters: you must choose at least one stream");
        return;
    }
    struct reading *t = new_reading(r, c);
    t->follows = silt_engine_query_bool(r, "follow");
    t->timestamps = silt_engine_query_bool(r, "timestamps");
    t->since_ms = time_of(r, "since");
    t->until_ms = time_of(r, "until");
    if (silt_slice_to_u64(silt_engine_query(r, "tail"), 0, 1000000000, &t->tail, &e) < 0)
        t->tail = UINT64_MAX;
    silt_http_begin(r, 200, SILT_LIT("application/vnd.docker.multiplexed-stream"),
                    SILT_LIT("Api-Version: " SILT_ENGINE_API "\r\n"));
    begin(t, c);
}

static void on_input(struct silt_http_request *r, silt_slice piece, bool end_of_it)
{
    (void)r; /* the program has no standard input */
    (void)piece;
    (void)end_of_it;
}

SILT_HANDLER(silt_engine_container_attach)
{
    struct silt_container *c = silt_engine_container(r, args[0]);
    if (c == NULL)
        return;
    if (r->head->upgrade && !silt_http_may_upgrade_late(r)) {
        silt_engine_refuse(r, 503, "the daemon is stopping");
        return;
    }
    bool upgrades = r->head->upgrade;
    struct reading *t = new_reading(r, c);
    t->follows = true;
    if (!silt_engine_query_bool(r, "logs") && silt_container_runs(c))
        t->tail = 0;
    r->halves = upgrades;
    if (upgrades)
        silt_http_upgrade_late(
            r,
            SILT_LIT("Content-Type: application/vnd.docker.multiplexed-stream\r\nConnection: "
                     "Upgrade\r\nUpgrade: tcp\r\n"),
            on_input);
    else
        silt_http_begin(r, 200, SILT_LIT("application/vnd.docker.multiplexed-stream"),
                        (silt_slice){NULL, 0});
    if (c->state <= SILT_CONTAINER_IS_STARTING || silt_container_has_exited(c))
        silt_list_append(&c->starters, &t->ask.link);
    else
        begin(t, c);
}
