/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/file/worker_pool.h"
#include "base/fd.h"
#include "sandbox/core/image.h"
#include "sandbox/core/facet.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    IDLE_KEPT = 2,   /* idle workers kept for the next operation */
    IDLE_MS = 10000, /* for so long */
    FRAMES_PER_TURN = 32,
    /* Frames per turn of a watch, and of other operations while many are busy. */
    FEW_PER_TURN = 4,
    ALL_PER_TURN = 48,
    /* For uploads: fewer switches between siltd and a worker. The kernel may grant less. */
    SOCKET_ROOM = 1 << 20,
    WAITING_MAX = 4096,               /* operations of one sandbox waiting for a worker */
    PACED_MAX = SILT_WORKERS_MAX - 4, /* workers for transfers that may stall */
};

/* A worker process: our end of its socket pair. */
struct hand {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;        /* in sandbox->work.idle or .busy */
    uint64_t number;              /* silt-init's number for it */
    struct silt_watch watch;      /* fd owned */
    struct silt_work *work;       /* borrowed; NULL: idle */
    struct silt_grave grave;
};

/*   WAITING --a worker is free--> RUNNING --last frame, failure, leave--> gone */
struct silt_work {
    struct silt_sandbox *sandbox; /* borrowed */
    struct silt_link link;        /* in sandbox->work.waiting */
    struct silt_work_sink *sink;  /* borrowed */
    struct hand *hand;            /* borrowed; NULL: waiting */
    enum silt_work_kind kind;
    uint32_t patience_ms;
    struct silt_timer timer;
    bool paused;
    bool counted;                   /* in sandbox->work.paced */
    bool full;                      /* a feed was refused: owes a `room` */
    bool feeding;                   /* an upload whose last bytes have not come yet */
    const struct silt_share *share; /* borrowed; NULL: bytes are sent in frames */
    bool is_shared;                 /* the worker has it */
    unsigned spans;                 /* pieces of it that the worker has not used up */
    struct silt_grave grave;
    size_t len;
    char frame[]; /* the request */
};

static struct silt_loop *loop_of(const struct silt_sandbox *s)
{
    return s->registry->loop;
}

static void free_hand(struct silt_grave *g)
{
    free(silt_outer(g, struct hand, grave));
}

static void free_work(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_work, grave));
}

/* A worker exits when our end is closed. */
static void close_hand(struct hand *h)
{
    silt_loop_forget(loop_of(h->sandbox), &h->watch);
    silt_close_fd(&h->watch.fd);
    silt_list_remove(&h->link);
    h->sandbox->work.count--;
    silt_loop_bury(loop_of(h->sandbox), &h->grave);
}

static void kill_hand(struct hand *h)
{
    struct silt_frame_out f = {.type = SILT_AGENT_WORKER_KILL, .id = h->number};
    silt_channel_send(h->sandbox, &f);
    close_hand(h);
}

static void bury_work(struct silt_work *w)
{
    silt_loop_cancel(loop_of(w->sandbox), &w->timer);
    silt_list_remove(&w->link);
    w->sandbox->work.longs -= w->kind == SILT_WORK_LONG;
    w->sandbox->work.paced -= w->counted;
    silt_loop_bury(loop_of(w->sandbox), &w->grave);
}

static void serve_waiting(struct silt_sandbox *s);

static void end_failed(struct silt_work *w, const struct silt_error *e)
{
    struct silt_work_sink *sink = w->sink;
    struct silt_sandbox *s = w->sandbox;
    if (w->hand != NULL)
        close_hand(w->hand);
    bury_work(w);
    sink->failed(sink, e);
    serve_waiting(s);
}

static void on_impatient(struct silt_timer *t)
{
    struct silt_work *w = silt_outer(t, struct silt_work, timer);
    struct silt_error e;
    (void)silt_fail(&e, SILT_TIMEOUT, "no answer from inside the sandbox for %u ms",
                    w->patience_ms);
    if (w->hand != NULL) {
        kill_hand(w->hand);
        w->hand = NULL;
    } else {
        w->sandbox->work.waiting_count--;
    }
    end_failed(w, &e);
}

/* The timeout runs only when it is the worker's turn: not while the client should send or
 * receive. */
static void restart_patience(struct silt_work *w)
{
    bool is_clients = w->paused || (w->feeding && !w->full && w->spans == 0);
    if (w->patience_ms > 0 && !is_clients)
        silt_loop_after(loop_of(w->sandbox), &w->timer, w->patience_ms);
    else
        silt_loop_cancel(loop_of(w->sandbox), &w->timer);
}

/* Keeps a worker that has finished for the next operation. */
static void rest(struct hand *h)
{
    struct silt_sandbox *s = h->sandbox;
    h->work = NULL;
    silt_list_remove(&h->link);
    silt_list_append(&s->work.idle, &h->link);
    silt_loop_watch(loop_of(s), &h->watch, EPOLLIN);
    serve_waiting(s);
    size_t idle = 0;
    silt_list_each(it, &s->work.idle) idle++;
    if (idle > IDLE_KEPT)
        close_hand(silt_outer(s->work.idle.next, struct hand, link));
    silt_loop_after(loop_of(s), &s->work.timer, IDLE_MS);
}

static void on_idle(struct silt_timer *t)
{
    struct silt_sandbox *s = silt_outer(t, struct silt_sandbox, work.timer);
    silt_list_each(it, &s->work.idle) close_hand(silt_outer(it, struct hand, link));
}

/* An upload answered before its end leaves bytes in flight: that worker is not reused. */
static void end_said(struct silt_work *w)
{
    struct hand *h = w->hand;
    bool is_clean = !w->feeding;
    bury_work(w);
    if (is_clean) {
        rest(h);
        return;
    }
    struct silt_sandbox *s = h->sandbox;
    close_hand(h);
    serve_waiting(s);
}

static void deal_with(struct hand *h, const struct silt_frame *f, size_t body_len)
{
    struct silt_work *w = h->work;
    struct silt_work_sink *sink = w->sink;
    struct silt_error e;
    silt_slice body = {f->body, body_len};
    bool last = (f->flags & SILT_WORKER_LAST) != 0;
    if (f->type == 0 || f->type >= SILT_WORKER_SAY_MAX
        || (f->type == SILT_WORKER_SAY_FAILED && body_len != sizeof(e))
        || (f->type == SILT_WORKER_SAY_TAKEN && (w->spans == 0 || last))) {
        (void)silt_fail(&e, SILT_PROTOCOL, "a worker inside the sandbox broke the protocol");
        end_failed(w, &e);
        return;
    }
    if (f->type == SILT_WORKER_SAY_DATA && body_len == 0
        && !last) { /* keep-alive, not for the sink */
        restart_patience(w);
        return;
    }
    if (f->type != SILT_WORKER_SAY_FAILED) {
        w->spans -= f->type == SILT_WORKER_SAY_TAKEN;
        if (last)
            end_said(w);
        else
            restart_patience(w);
        sink->said(sink, (enum silt_worker_say)f->type, body, last);
        return;
    }
    memcpy(&e, f->body, sizeof(e));
    e.text[sizeof(e.text) - 1] = 0;
    if (e.code <= SILT_OK || e.code >= SILT_CODE_MAX)
        e.code = SILT_INTERNAL;
    end_said(w);
    sink->failed(sink, &e);
}

static void on_gone(struct hand *h)
{
    struct silt_error e;
    (void)silt_fail(&e, SILT_INTERNAL, "the worker inside the sandbox was killed");
    if (h->work != NULL)
        end_failed(h->work, &e);
    else
        close_hand(h);
}

static void listen_once(struct hand *h, bool *more)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } incoming;
    struct silt_error e;
    struct silt_parcel p = {.data = incoming.bytes, .len = sizeof(incoming.bytes)};
    int got = silt_fd_recv(h->watch.fd, &p, &e);
    *more = got > 0;
    if (got < 0 && e.sys == EAGAIN)
        return;
    silt_parcel_close(&p); /* we expect no descriptors from it */
    if (got <= 0 || p.len < sizeof(struct silt_frame) || h->work == NULL) {
        *more = false;
        on_gone(h);
        return;
    }
    deal_with(h, &incoming.frame, p.len - sizeof(struct silt_frame));
}

static void watch(struct hand *h)
{
    uint32_t events = h->work != NULL && h->work->paused ? 0 : EPOLLIN;
    if (h->work != NULL && h->work->full)
        events |= EPOLLOUT;
    silt_loop_watch(loop_of(h->sandbox), &h->watch, events);
}

static int frames_of(struct silt_registry *r, const struct silt_work *w)
{
    if (r->work_turn != r->loop->turns) {
        r->work_turn = r->loop->turns;
        r->work_frames = 0;
    }
    bool few = r->work_frames >= ALL_PER_TURN || (w != NULL && w->kind == SILT_WORK_LONG);
    return few ? FEW_PER_TURN : FRAMES_PER_TURN;
}

static void on_ready(struct silt_watch *wt, uint32_t events)
{
    struct hand *h = silt_outer(wt, struct hand, watch);
    struct silt_registry *r = h->sandbox->registry;
    struct silt_work *w = h->work;
    bool more = true;
    if ((events & EPOLLOUT) && w != NULL && w->full) {
        w->full = false;
        watch(h);
        restart_patience(w);
        w->sink->room(w->sink);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    int frames = frames_of(r, w);
    for (int i = 0; i < frames && more && h->watch.fd >= 0 && h->work == w; i++) {
        if (w != NULL && w->paused)
            return;
        r->work_frames++;
        listen_once(h, &more);
    }
}

/* Starts a process; its end of the pair goes to silt-init. */
static int new_hand(struct silt_sandbox *s, struct hand **ret, struct silt_error *e)
{
    int pair[2];
    if (silt_fd_pair(SOCK_SEQPACKET, pair, e) < 0)
        return -1;
    silt_fd_refuse_fds(pair[0]);
    (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_ROOM}, sizeof(int));
    if (silt_fd_nonblock(pair[0], e) < 0) {
        silt_close_fd(&pair[0]);
        silt_close_fd(&pair[1]);
        return -1;
    }
    struct hand *h = calloc(1, sizeof(*h));
    if (h == NULL)
        abort();
    *h = (struct hand){.sandbox = s, .number = silt_registry_number(s->registry)};
    h->watch = (struct silt_watch){.fd = pair[0], .on_ready = on_ready};
    h->grave.free = free_hand;
    silt_list_init(&h->link);
    s->work.count++;
    struct silt_frame_out f = {.type = SILT_AGENT_WORKER,
                               .id = h->number,
                               .body = silt_image_user(s),
                               .fds = &pair[1],
                               .nfds = 1};
    silt_channel_send(s, &f);
    silt_close_fd(&pair[1]);
    *ret = h;
    return 0;
}

static bool has_free_hand(const struct silt_sandbox *s, enum silt_work_kind kind)
{
    if (kind == SILT_WORK_PACED && s->work.paced >= PACED_MAX)
        return false;
    return !silt_list_empty(&s->work.idle) || kind == SILT_WORK_LONG
           || s->work.count - s->work.longs < SILT_WORKERS_MAX;
}

/* An idle worker, unless it has died, or a new one. */
static struct hand *ask_one(struct silt_sandbox *s, const struct silt_parcel *p,
                            struct silt_error *e)
{
    struct hand *h;
    while ((h = silt_list_first(&s->work.idle, struct hand, link)) != NULL) {
        if (silt_fd_send(h->watch.fd, p, e) == 0)
            return h;
        close_hand(h);
    }
    if (new_hand(s, &h, e) < 0)
        return NULL;
    if (silt_fd_send(h->watch.fd, p, e) == 0) /* a request always fits an empty socket */
        return h;
    close_hand(h);
    return NULL;
}

static int give(struct silt_work *w, struct silt_error *e)
{
    struct silt_sandbox *s = w->sandbox;
    struct silt_parcel p = {.data = w->frame, .len = w->len};
    if (s->channel.watch.fd < 0)
        return silt_fail(e, SILT_GONE, "the sandbox's processes ended");
    struct hand *h = ask_one(s, &p, e);
    if (h == NULL)
        return silt_because(e, "ask a worker");
    silt_list_remove(&h->link);
    silt_list_append(&s->work.busy, &h->link);
    h->work = w;
    w->hand = h;
    w->counted = w->kind == SILT_WORK_PACED;
    s->work.paced += w->counted;
    watch(h);
    restart_patience(w);
    return 0;
}

static struct silt_work *next_waiting(struct silt_sandbox *s)
{
    for (int kind = SILT_WORK_PACED; kind >= SILT_WORK_SHORT; kind--)
        if (!silt_list_empty(&s->work.waiting[kind]) && has_free_hand(s, (enum silt_work_kind)kind))
            return silt_list_first(&s->work.waiting[kind], struct silt_work, link);
    return NULL;
}

static void serve_waiting(struct silt_sandbox *s)
{
    struct silt_error e;
    struct silt_work *w;
    if (s->work.serving) /* called from a callback: the outer call continues */
        return;
    s->work.serving = true;
    while ((w = next_waiting(s)) != NULL) {
        silt_list_remove(&w->link);
        s->work.waiting_count--;
        if (give(w, &e) < 0)
            end_failed(w, &e);
    }
    s->work.serving = false;
}

static bool takes_bytes(uint32_t op, uint32_t flags)
{
    return op == SILT_WORKER_UNTAR || (op == SILT_WORKER_WRITE && (flags & SILT_WORKER_ONLY) == 0);
}

static struct silt_work *new_work(struct silt_sandbox *s, const struct silt_work_request *q,
                                  size_t len, struct silt_work_sink *sink)
{
    struct silt_work *w = calloc(1, sizeof(*w) + len);
    if (w == NULL)
        abort();
    w->sandbox = s;
    w->sink = sink;
    w->kind = q->kind;
    w->patience_ms = q->patience_ms;
    w->feeding = takes_bytes(q->op, q->ask.flags);
    w->timer.on_time = on_impatient;
    w->grave.free = free_work;
    w->len = len;
    silt_list_init(&w->link);
    s->work.longs += w->kind == SILT_WORK_LONG;
    return w;
}

static char *put(char *at, silt_slice part)
{
    if (part.len > 0)
        memcpy(at, part.data, part.len);
    return at + part.len;
}

static void lay_frame(struct silt_work *w, const struct silt_work_request *q)
{
    struct silt_frame f = {.type = q->op};
    struct silt_worker_ask ask = q->ask;
    ask.cwd_len = (uint32_t)q->cwd.len;
    ask.path_len = (uint32_t)q->path.len;
    ask.to_len = (uint32_t)q->to.len;
    ask.text_len = (uint32_t)q->text.len;
    char *at = put(w->frame, (silt_slice){(const char *)&f, sizeof(f)});
    at = put(at, (silt_slice){(const char *)&ask, sizeof(ask)});
    at = put(put(at, q->cwd), q->path);
    (void)put(put(at, q->to), q->text);
}

int silt_work_start(struct silt_sandbox *s, const struct silt_work_request *q,
                    struct silt_work_sink *sink, struct silt_work **ret, struct silt_error *e)
{
    size_t len = sizeof(struct silt_frame) + sizeof(q->ask) + q->cwd.len + q->path.len + q->to.len
                 + q->text.len;
    if (q->cwd.len > SILT_WORKER_PATH_MAX || q->path.len > SILT_WORKER_PATH_MAX
        || q->to.len > SILT_WORKER_PATH_MAX || len > SILT_FRAME_MAX)
        return silt_fail(e, SILT_INVALID, "a path of more than %d bytes", SILT_WORKER_PATH_MAX);
    if (q->kind == SILT_WORK_LONG && s->work.longs >= SILT_WORKER_WATCHES_MAX)
        return silt_fail(e, SILT_LIMIT, "%d watches in this sandbox already",
                         SILT_WORKER_WATCHES_MAX);
    if (s->work.waiting_count >= WAITING_MAX)
        return silt_fail(e, SILT_LIMIT, "%d operations wait in this sandbox already", WAITING_MAX);
    struct silt_work *w = new_work(s, q, len, sink);
    lay_frame(w, q);
    if (!has_free_hand(s, q->kind)) {
        silt_list_append(&s->work.waiting[q->kind], &w->link);
        s->work.waiting_count++;
        restart_patience(w);
    } else if (give(w, e) < 0) {
        bury_work(w);
        return -1;
    }
    *ret = w;
    return 0;
}

/* False: the socket is full. The loop reports a worker that is gone. */
static bool post(struct silt_work *w, const struct silt_parcel *p)
{
    struct silt_error e;
    if (silt_fd_send(w->hand->watch.fd, p, &e) == 0
        || (e.sys != EAGAIN && e.sys != ENOBUFS && e.sys != ENOMEM))
        return true;
    w->full = true;
    watch(w->hand);
    return false;
}

static bool post_bytes(struct silt_work *w, silt_slice bytes, uint32_t flags)
{
    static union {
        struct silt_frame frame;
        char bytes[SILT_FRAME_MAX];
    } out;
    out.frame = (struct silt_frame){.type = SILT_WORKER_DATA, .flags = flags};
    (void)put(out.frame.body, bytes);
    return post(w,
                &(struct silt_parcel){.data = &out, .len = sizeof(struct silt_frame) + bytes.len});
}

static bool post_share(struct silt_work *w)
{
    struct silt_frame f = {.type = SILT_WORKER_SHARE};
    if (!w->is_shared)
        w->is_shared =
            post(w, &(struct silt_parcel){
                        .data = &f, .len = sizeof(f), .fds = {w->share->reader}, .nfds = 1});
    return w->is_shared;
}

static bool post_span(struct silt_work *w, silt_slice bytes, uint32_t flags)
{
    struct {
        struct silt_frame frame;
        struct silt_worker_span span;
    } out = {
        .frame = {.type = SILT_WORKER_DATA, .flags = flags},
        .span = {.offset = (uint64_t)(bytes.data - w->share->bytes), .length = bytes.len},
    };
    if (!post_share(w) || !post(w, &(struct silt_parcel){.data = &out, .len = sizeof(out)}))
        return false;
    w->spans++;
    return true;
}

void silt_work_share(struct silt_work *w, const struct silt_share *share)
{
    w->share = share;
}

bool silt_work_feed(struct silt_work *w, silt_slice bytes, bool last)
{
    uint32_t flags = last ? SILT_WORKER_LAST : 0;
    bool taken = false;
    if (w->hand == NULL)
        w->full = true; /* `room` is called when it gets a worker: see give */
    else
        taken = w->share != NULL ? post_span(w, bytes, flags) : post_bytes(w, bytes, flags);
    w->feeding = w->feeding && !(taken && last);
    restart_patience(w);
    return taken;
}

void silt_work_pause(struct silt_work *w, bool paused)
{
    if (w->paused == paused)
        return;
    w->paused = paused;
    if (w->hand == NULL)
        return;
    watch(w->hand);
    restart_patience(w);
}

void silt_work_leave(struct silt_work *w)
{
    struct silt_sandbox *s = w->sandbox;
    if (w->hand != NULL)
        close_hand(w->hand);
    else
        s->work.waiting_count--;
    bury_work(w);
    serve_waiting(s);
}

static void init(struct silt_sandbox *s)
{
    silt_list_init(&s->work.idle);
    silt_list_init(&s->work.busy);
    silt_list_init(&s->work.waiting[SILT_WORK_SHORT]);
    silt_list_init(&s->work.waiting[SILT_WORK_PACED]);
    s->work.timer.on_time = on_idle;
}

static void on_failed(struct silt_sandbox *s, uint64_t number, const struct silt_error *e)
{
    silt_list_each(it, &s->work.busy)
    {
        struct hand *h = silt_outer(it, struct hand, link);
        if (h->number != number)
            continue;
        struct silt_error own = *e;
        if (e->sys == EAGAIN) { /* fork failed: the sandbox is at its process limit */
            own.code = SILT_LIMIT;
            own.sys = 0;
        }
        end_failed(h->work, &own);
        return;
    }
}

static void close_idle(struct silt_sandbox *s)
{
    silt_loop_cancel(loop_of(s), &s->work.timer);
    silt_list_each(it, &s->work.idle) close_hand(silt_outer(it, struct hand, link));
}

static void fail_waiting(struct silt_sandbox *s, struct silt_link *list, const struct silt_error *e)
{
    while (!silt_list_empty(list)) {
        struct silt_work *w = silt_list_first(list, struct silt_work, link);
        silt_list_remove(&w->link);
        s->work.waiting_count--;
        end_failed(w, e);
    }
}

static void drop_all(struct silt_sandbox *s, const struct silt_error *e)
{
    close_idle(s);
    fail_waiting(s, &s->work.waiting[SILT_WORK_SHORT], e);
    fail_waiting(s, &s->work.waiting[SILT_WORK_PACED], e);
    while (!silt_list_empty(&s->work.busy))
        end_failed(silt_outer(s->work.busy.next, struct hand, link)->work, e);
}

static void forget_all(struct silt_sandbox *s)
{
    close_idle(s);
    silt_list_each(it, &s->work.busy)
    {
        struct hand *h = silt_outer(it, struct hand, link);
        struct silt_work *w = h->work;
        close_hand(h);
        bury_work(w);
    }
    for (int kind = 0; kind < (int)SILT_COUNT(s->work.waiting); kind++)
        silt_list_each(it, &s->work.waiting[kind])
            bury_work(silt_outer(it, struct silt_work, link));
}

static void on_frame(struct silt_sandbox *s, const struct silt_frame *f, size_t body_len)
{
    struct silt_error e;
    (void)body_len;
    memcpy(&e, f->body, sizeof(e));
    e.text[sizeof(e.text) - 1] = 0;
    if (e.code <= SILT_OK || e.code >= SILT_CODE_MAX)
        e.code = SILT_PROTOCOL;
    on_failed(s, f->id, &e);
}

const struct silt_facet silt_work_facet = {
    .init = init,
    .on_ended = drop_all,
    .forget = forget_all,
    .frames = SILT_FRAME_OF(SILT_AGENT_FAILED),
    .on_frame = on_frame,
};
