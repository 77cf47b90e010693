/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/process/log_follower.h"
#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>

enum {
    TURN_MAX = 512 << 10,   /* bytes of one log per loop turn */
    ALL_TURN_MAX = 1 << 20, /* of all logs, so that hundreds of readers do not delay others */
    CONFIRM_AT = 1 << 20,   /* bytes read before a waiting process is credited */
    /* For the agent's answer to a flush; after that the log is taken as it is. */
    FLUSH_MS = 3000,
    LOOK_AGAIN_MS = 20, /* poll interval beside a reader that the process waits for */
};

/*   OPENING --log--> FLUSHING (snapshot of a running process) --answer, end, timeout--> READING
 *   OPENING --log--> READING --nothing more--> IDLE --more, end--> READING --end--> DONE
 *                     |  ^ \---sink is full--> PAUSED --resume--/
 *                     v  |
 *                   FETCHING (a thread waits for the disk) */
enum state { OPENING, FLUSHING, READING, FETCHING, PAUSED, IDLE, DONE };

struct fetch;

struct silt_log_follower {
    struct silt_process *process;        /* borrowed: in its list */
    struct silt_log_follower_sink *sink; /* borrowed */
    struct silt_link link;
    struct silt_log_follower_options options;
    enum state state;
    struct silt_log_file *log;
    struct fetch *fetch; /* FETCHING */
    struct silt_timer again;
    struct silt_grave grave;
    uint64_t at, until;
    uint64_t head; /* of the log, as of the last fetch */
    bool begun;
    bool knew_end;      /* the process had ended before the last fetch: its result is complete */
    uint64_t flush;     /* snapshot: number of the flush to wait for */
    uint64_t confirmed; /* hold: position acknowledged to the process */
    /* The loss is computed from what the writer dropped, if we know how much of that we had
     * read. */
    bool counted;
    uint64_t dropped, had;
};

struct fetch {
    struct silt_job job;
    struct silt_log_follower *follow; /* NULL: stopped */
    struct silt_log_file *log;
    uint64_t at;
    enum silt_log_reader_found found;
    struct silt_log_reader_batch batch;
    char bytes[SILT_LOG_BATCH];
};

static void free_follow(struct silt_grave *g)
{
    free(silt_outer(g, struct silt_log_follower, grave));
}

void silt_log_follower_stop(struct silt_log_follower *f)
{
    struct silt_process *p = f->process;
    struct silt_sandbox *s = p->sandbox;
    assert(f->state != DONE);
    f->state = DONE;
    if (f->fetch != NULL)
        f->fetch->follow = NULL;
    silt_loop_cancel(s->registry->loop, &f->again);
    silt_list_remove(&f->link);
    if (p->holder == f) {
        p->holder = NULL;
        if (p->exec != NULL)
            silt_exec_detach(p->exec);
    }
    silt_log_file_leave(f->log);
    silt_loop_bury(s->registry->loop, &f->grave);
    silt_process_unuse(p);
    silt_sandbox_release(s);
}

static void fail(struct silt_log_follower *f, enum silt_code code, const char *why)
{
    struct silt_log_follower_sink *sink = f->sink;
    struct silt_error e;
    (void)silt_fail(&e, code, "read the log of process %s: %s", f->process->row.id, why);
    silt_log_follower_stop(f);
    sink->failed(sink, &e);
}

/* siltd's remark follows everything the process wrote. */
static void tell_remark(struct silt_log_follower *f)
{
    const struct silt_process_row *row = &f->process->row;
    struct silt_log_reader_piece piece = {.stream = SILT_LOG_STDERR, .time_ms = row->ended_ms};
    if (!f->knew_end || row->remark == NULL || f->at != f->head)
        return;
    f->at += SILT_LOG_FOLLOWER_REMARK;
    piece.bytes = silt_slice_of(row->remark);
    piece.after = f->at;
    f->sink->output(f->sink, &piece);
}

static void finish(struct silt_log_follower *f, bool remarked)
{
    struct silt_log_follower_sink *sink = f->sink;
    if (!remarked)
        tell_remark(f);
    if (f->state == DONE)
        return;
    uint64_t cursor = f->at;
    silt_log_follower_stop(f);
    sink->over(sink, cursor);
}

static void begin(struct silt_log_follower *f, const struct silt_log_head *h)
{
    if (f->begun)
        return;
    f->begun = true;
    f->until = f->options.until > 0 ? f->options.until : h->head;
    if (f->options.from_tail)
        f->at = h->tail;
    f->counted = f->at <= h->tail;
    f->dropped = h->dropped[0] + h->dropped[1];
    if (f->sink->opened != NULL)
        f->sink->opened(f->sink, h);
}

static void ask_for_more(struct silt_log_follower *f)
{
    struct silt_process *p = f->process;
    if (p->exec == NULL)
        return; /* woken by its end */
    if (p->holder != NULL && p->holder != f) {
        /* Following from here would release output that the other reader has not read yet. */
        silt_loop_after(p->sandbox->registry->loop, &f->again, LOOK_AGAIN_MS);
    } else if (!p->told_to_follow || (p->holder == f && f->confirmed != f->at)) {
        f->confirmed = f->at;
        p->told_to_follow = true;
        silt_exec_follow(p->exec, f->at);
    }
}

static void on_dry(struct silt_log_follower *f)
{
    if (f->options.snapshot || f->knew_end) {
        finish(f, false);
        return;
    }
    if (silt_process_is_over(f->process))
        return; /* it ended during the fetch: there may be more, and no event follows */
    f->state = IDLE;
    if (f->sink->idle != NULL)
        f->sink->idle(f->sink);
    if (f->state == IDLE)
        ask_for_more(f);
}

static void on_overtaken(struct silt_log_follower *f, const struct silt_log_head *h, bool expired)
{
    uint64_t lost = h->tail - f->at, dropped = h->dropped[0] + h->dropped[1];
    if (f->counted && !expired && dropped - f->dropped >= f->had && dropped >= f->dropped)
        lost = dropped - f->dropped - f->had;
    f->at = h->tail;
    f->counted = true;
    f->dropped = dropped;
    f->had = 0;
    if (lost > 0)
        f->sink->gap(f->sink, lost, expired ? SILT_GAP_EXPIRED : SILT_GAP_OVERWRITTEN, f->at);
}

static void deliver_piece(struct silt_log_follower *f, const struct silt_log_reader_piece *piece)
{
    f->at = piece->after;
    f->had += piece->bytes.len;
    if (piece->stream == SILT_LOG_GAP) {
        f->had += piece->lost;
        f->sink->gap(f->sink, piece->lost, SILT_GAP_UNSTORED, f->at);
    } else {
        f->sink->output(f->sink, piece);
    }
}

static void confirm(struct silt_log_follower *f)
{
    struct silt_process *p = f->process;
    if (p->holder != f || p->exec == NULL || f->at - f->confirmed < CONFIRM_AT)
        return;
    f->confirmed = f->at;
    p->told_to_follow = true;
    silt_exec_follow(p->exec, f->at);
}

static bool is_full(struct silt_log_follower *f)
{
    if (f->sink->full != NULL && f->sink->full(f->sink))
        f->state = PAUSED;
    return f->state == PAUSED;
}

/* Returns the bytes handled. */
static size_t deliver(struct silt_log_follower *f, struct silt_log_reader_batch *b)
{
    struct silt_log_reader_piece piece;
    int more = 1;
    while (f->state == READING && (more = silt_log_reader_next(b, &piece)) > 0) {
        deliver_piece(f, &piece);
        if (f->state == READING && f->options.snapshot && f->at >= f->until) {
            finish(f, false);
            return b->used;
        }
        if (f->state == READING)
            (void)is_full(f);
    }
    if (more < 0 && f->state == READING)
        fail(f, SILT_PROTOCOL, "it is broken");
    if (f->state != DONE)
        confirm(f);
    return b->used;
}

static bool is_behind_the_remark(const struct silt_log_follower *f, const struct silt_log_head *h)
{
    return silt_process_is_over(f->process) && f->process->row.remark != NULL
           && f->at == h->head + SILT_LOG_FOLLOWER_REMARK;
}

static size_t take(struct silt_log_follower *f, enum silt_log_reader_found found,
                   struct silt_log_reader_batch *b)
{
    bool first = !f->begun;
    f->head = b->head.head;
    switch (found) {
    case SILT_LOG_LATER: /* cannot come from a thread */
    case SILT_LOG_BROKEN:
        fail(f, SILT_PROTOCOL, "it is broken");
        return 0;
    case SILT_LOG_WRONG:
        if (is_behind_the_remark(f, &b->head)) {
            begin(f, &b->head);
            if (f->state == READING)
                finish(f, true);
        } else {
            fail(f, first ? SILT_INVALID : SILT_PROTOCOL,
                 first ? "no record begins at this cursor" : "it is broken");
        }
        return 0;
    case SILT_LOG_GONE:
        if (first && f->options.from_tail)
            return SILT_LOG_BATCH; /* retry: the log moves fast */
        begin(f, &b->head);
        if (f->state == READING)
            on_overtaken(f, &b->head, first);
        if (f->state == READING && f->options.snapshot && f->at >= f->until)
            finish(f, false);
        return SILT_LOG_BATCH;
    case SILT_LOG_DRY:
        begin(f, &b->head);
        if (f->state == READING)
            on_dry(f);
        return 0;
    case SILT_LOG_FOUND:
        begin(f, &b->head);
        if (f->state == READING && f->options.snapshot && f->at >= f->until)
            finish(f, false);
        return f->state == READING ? deliver(f, b) : 0;
    }
    return 0;
}

/* Runs on a thread. */
static void run_fetch(struct silt_job *j)
{
    struct fetch *x = silt_outer(j, struct fetch, job);
    x->found = silt_log_reader_fetch(x->log->fd, x->at, true, &x->batch);
}

static void pump(struct silt_log_follower *f);

static void on_fetched(struct silt_job *j)
{
    struct fetch *x = silt_outer(j, struct fetch, job);
    struct silt_log_follower *f = x->follow;
    if (f != NULL) {
        f->fetch = NULL;
        f->state = READING;
        (void)take(f, x->found, &x->batch);
        if (f->state == READING)
            pump(f);
    }
    silt_log_file_leave(x->log);
    free(x);
}

static void fetch_on_a_thread(struct silt_log_follower *f, uint64_t at)
{
    struct fetch *x = malloc(sizeof(*x));
    if (x == NULL)
        abort();
    x->job = (struct silt_job){.run = run_fetch, .done = on_fetched};
    x->follow = f;
    x->log = silt_log_file_share(f->log);
    x->at = at;
    x->batch = (struct silt_log_reader_batch){.bytes = x->bytes};
    f->fetch = x;
    f->state = FETCHING;
    silt_worker_submit(f->process->sandbox->registry->worker, &x->job);
}

static bool has_time(struct silt_registry *r)
{
    if (r->follow_turn != r->loop->turns) {
        r->follow_turn = r->loop->turns;
        r->follow_bytes = 0;
    }
    return r->follow_bytes < ALL_TURN_MAX;
}

static void pump(struct silt_log_follower *f)
{
    struct silt_registry *r = f->process->sandbox->registry;
    static char bytes[SILT_LOG_BATCH]; /* shared: a batch is handled before the next is read */
    struct silt_log_reader_batch b = {.bytes = bytes};
    size_t done = 0;
    while (f->state == READING && !is_full(f)) {
        bool late = !has_time(r);
        if (done >= TURN_MAX || late) {
            silt_loop_after(r->loop, &f->again, late ? 1 : 0); /* 0 may still run in this turn */
            return;
        }
        uint64_t at = !f->begun && f->options.from_tail ? SILT_LOG_OLDEST : f->at;
        f->knew_end = silt_process_is_over(f->process);
        enum silt_log_reader_found found = silt_log_reader_fetch(f->log->fd, at, false, &b);
        if (found == SILT_LOG_LATER)
            fetch_on_a_thread(f, at);
        else
            done += take(f, found, &b);
        r->follow_bytes += b.used;
        b.used = 0;
    }
}

static void read_nothing(struct silt_log_follower *f)
{
    static const struct silt_log_head empty = {.ring_bytes = SILT_LOG_RING};
    f->knew_end = silt_process_is_over(f->process);
    if (f->options.from_tail)
        f->at = 0;
    if (f->at != 0 && !is_behind_the_remark(f, &empty)) {
        fail(f, SILT_INVALID, "no record begins at this cursor");
        return;
    }
    begin(f, &empty);
    if (f->state != DONE)
        finish(f, f->at != 0);
}

/* Output written before the request must be part of the response. */
static void ask_to_flush(struct silt_log_follower *f)
{
    if (f->options.snapshot && f->options.until == 0)
        f->flush = silt_flush_want(f->process);
}

static void begin_reading(struct silt_log_follower *f)
{
    struct silt_process *p = f->process;
    f->log = silt_log_file_share(p->log);
    f->state = silt_flush_is_done(p, f->flush) ? READING : FLUSHING;
    if (f->state == FLUSHING)
        silt_loop_after(p->sandbox->registry->loop, &f->again, FLUSH_MS);
}

static void on_again(struct silt_timer *t)
{
    struct silt_log_follower *f = silt_outer(t, struct silt_log_follower, again);
    struct silt_process *p = f->process;
    if (f->state == OPENING && p->log_state == SILT_PROCESS_LOG_OPEN) {
        begin_reading(f);
    } else if (f->state == OPENING && p->log_state == SILT_PROCESS_LOG_ABSENT) {
        f->state = READING;
        read_nothing(f);
        return;
    } else if (f->state == FLUSHING) {
        f->state = READING;
        silt_flush_give_up(p, f->flush);
    } else if (f->state == IDLE) {
        f->state = READING;
    }
    if (f->state == READING)
        pump(f);
}

struct silt_log_follower *silt_log_follower_start(struct silt_process *p,
                                                  const struct silt_log_follower_options *o,
                                                  struct silt_log_follower_sink *sink)
{
    struct silt_log_follower *f = calloc(1, sizeof(*f));
    if (f == NULL)
        abort();
    *f = (struct silt_log_follower){.process = p,
                                    .sink = sink,
                                    .options = *o,
                                    .at = o->from_tail ? 0 : o->cursor,
                                    .again = {.on_time = on_again},
                                    .grave = {.free = free_follow}};
    silt_list_append(&p->follows, &f->link);
    silt_sandbox_hold(p->sandbox);
    if (o->hold)
        p->holder = f;
    ask_to_flush(f);
    if (p->log_state == SILT_PROCESS_LOG_UNKNOWN)
        silt_process_open_log(p);
    if (p->log_state != SILT_PROCESS_LOG_OPENING)
        silt_loop_after(p->sandbox->registry->loop, &f->again, 0);
    return f;
}

void silt_log_follower_resume(struct silt_log_follower *f)
{
    if (f->state != PAUSED)
        return;
    f->state = READING;
    pump(f);
}

/* Whoever is woken may take others along and bring new ones: each that was there has its turn, some
 * may have two. */
static void visit(struct silt_process *p,
                  void (*wake)(struct silt_log_follower *f, const struct silt_error *e),
                  const struct silt_error *e)
{
    size_t left = 0;
    silt_list_each(it, &p->follows) left++;
    for (; left > 0 && !silt_list_empty(&p->follows); left--)
        wake(silt_outer(silt_list_rotate(&p->follows), struct silt_log_follower, link), e);
}

static void wake_opening(struct silt_log_follower *f, const struct silt_error *e)
{
    if (f->state != OPENING)
        return;
    if (e != NULL)
        fail(f, e->code, e->text);
    else
        on_again(&f->again);
}

static void wake_idle(struct silt_log_follower *f, const struct silt_error *e)
{
    (void)e;
    if (f->state == IDLE)
        on_again(&f->again);
}

static void wake_flushing(struct silt_log_follower *f, const struct silt_error *e)
{
    (void)e;
    if (f->state != FLUSHING || !silt_flush_is_done(f->process, f->flush))
        return;
    silt_loop_cancel(f->process->sandbox->registry->loop, &f->again);
    f->state = READING;
    pump(f);
}

void silt_log_follower_log_is_here(struct silt_process *p, const struct silt_error *e)
{
    visit(p, wake_opening, e);
}

void silt_log_follower_wake_all(struct silt_process *p)
{
    silt_log_follower_wake_flushed(p);
    visit(p, wake_idle, NULL);
}

void silt_log_follower_wake_flushed(struct silt_process *p)
{
    visit(p, wake_flushing, NULL);
}
