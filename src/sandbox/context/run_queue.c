/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/run_queue.h"
#include "base/clock.h"
#include "base/log.h"
#include "sandbox/core/start_frame.h"

#include <stdlib.h>

enum {
    LINE_SIZE_MAX = 112 << 20, /* code with every byte escaped, and some more */
    HELD_MAX = 256,
    HELD_MS = 10,
};

struct silt_code_run {
    struct silt_link link;
    struct silt_context *context;    /* borrowed; NULL: finished */
    struct silt_code_run_sink *sink; /* borrowed; NULL: output is discarded */
    uint64_t id;
    char *code; /* owned; until it starts */
    size_t code_len;
    uint32_t timeout_ms;
    uint64_t output_bytes;
    enum silt_code_run_cause cause;
    bool asked;
    /* Output that ends inside a line waits a moment for the rest: Python's print writes the newline
     * separately, and clients would get it as a piece of its own. */
    char held[HELD_MAX];
    size_t held_len;
    int held_stream;
    struct silt_timer held_timer;
    struct silt_grave grave;
};

static void free_cell(struct silt_grave *g)
{
    struct silt_code_run *x = silt_outer(g, struct silt_code_run, grave);
    free(x->code);
    free(x);
}

static struct silt_code_run *current(struct silt_context *c)
{
    return c->state == SILT_CONTEXT_RUNNING ? silt_list_first(&c->cells, struct silt_code_run, link)
                                            : NULL;
}

/* After an interrupt everything is read, to reach the end; slow readers then lose output. */
static bool hears(const struct silt_context *c, struct silt_code_run *x)
{
    return x->sink != NULL && !(c->interrupted && x->sink->full(x->sink));
}

static void tell_held(struct silt_code_run *x)
{
    silt_slice bytes = {x->held, x->held_len};
    silt_loop_cancel(x->context->sandbox->registry->loop, &x->held_timer);
    x->held_len = 0;
    if (bytes.len > 0 && hears(x->context, x))
        x->sink->output(x->sink, x->held_stream, bytes);
}

static void on_held_time(struct silt_timer *t)
{
    tell_held(silt_outer(t, struct silt_code_run, held_timer));
}

/* Unlinks the run; the caller calls the sink. */
static struct silt_code_run_sink *finish(struct silt_code_run *x)
{
    struct silt_context *c = x->context;
    struct silt_code_run_sink *sink = x->sink;
    x->sink = NULL;
    x->context = NULL;
    silt_loop_cancel(c->sandbox->registry->loop, &x->held_timer);
    silt_list_remove(&x->link);
    c->cell_count--;
    c->sandbox->registry->unstarted_bytes -= x->code_len;
    x->code_len = 0;
    silt_loop_bury(c->sandbox->registry->loop, &x->grave);
    silt_sandbox_release(c->sandbox);
    return sink;
}

static uint64_t limit_of(const struct silt_code_run *x)
{
    return x->cause == SILT_CODE_RUN_TIMEOUT ? x->timeout_ms
                                             : x->context->sandbox->registry->settings.output_max;
}

static void end(struct silt_code_run *x, uint32_t count, const struct silt_death *death)
{
    tell_held(x);
    if (x->context == NULL)
        return; /* ended by a callback */
    struct silt_code_run_end how = {
        .cause = x->cause, .count = count, .death = death, .limit = limit_of(x)};
    struct silt_code_run_sink *sink = finish(x);
    if (sink != NULL)
        sink->ended(sink, &how);
}

static int check(const struct silt_context *c, silt_slice code, struct silt_error *e)
{
    const struct silt_registry *r = c->sandbox->registry;
    if (c->state == SILT_CONTEXT_DEAD)
        return silt_fail(e, SILT_GONE, "%s", c->death.message);
    if (code.len > SILT_CODE_BYTES_MAX)
        return silt_fail(e, SILT_LIMIT, "code of %zu bytes, at most %d", code.len,
                         SILT_CODE_BYTES_MAX);
    if (c->cell_count >= SILT_CONTEXT_CELLS_MAX)
        return silt_fail(e, SILT_LIMIT, "%d runs wait in this context already",
                         SILT_CONTEXT_CELLS_MAX);
    if (code.len > SILT_UNSTARTED_MAX - r->unstarted_bytes)
        return silt_fail(e, SILT_LIMIT, "code and commands of %zu bytes wait to be started already",
                         r->unstarted_bytes);
    if (c->sandbox->unsent_bytes > SILT_UNSENT_EACH_MAX || r->unsent_bytes > SILT_UNSENT_MAX)
        return silt_fail(e, SILT_LIMIT,
                         "code of %zu bytes waits for its interpreters in this sandbox already",
                         c->sandbox->unsent_bytes);
    return 0;
}

/* Default timeout: the context's, else the variable's, set by a context, sandbox or image. */
static uint32_t usual_timeout(const struct silt_context *c)
{
    struct silt_error e;
    uint64_t ms = 0;
    if (c->row.timeout_ms > 0)
        return c->row.timeout_ms;
    silt_slice name = SILT_LIT("INTERPRETER_EXECUTION_TIMEOUT_MS");
    silt_slice given = silt_env_find((silt_slice){c->row.env, c->row.env_len}, name);
    if (given.data == NULL)
        given = silt_env_given(c->sandbox, name);
    return silt_slice_to_u64(given, 0, INT32_MAX, &ms, &e) == 0 ? (uint32_t)ms : 0;
}

int silt_code_run_start(struct silt_context *c, silt_slice code, uint32_t timeout_ms,
                        struct silt_code_run_sink *sink, struct silt_code_run **ret,
                        struct silt_error *e)
{
    if (check(c, code, e) < 0)
        return -1;
    struct silt_code_run *x = calloc(1, sizeof(*x));
    char *copy = malloc(code.len + 1);
    if (x == NULL || copy == NULL)
        abort();
    if (code.len > 0)
        memcpy(copy, code.data, code.len);
    *x = (struct silt_code_run){.context = c,
                                .sink = sink,
                                .id = c->sandbox->registry->next_cell++,
                                .code = copy,
                                .code_len = code.len,
                                .timeout_ms = timeout_ms > 0 ? timeout_ms : usual_timeout(c),
                                .held_timer = {.on_time = on_held_time},
                                .grave = {.free = free_cell}};
    c->sandbox->registry->unstarted_bytes += code.len;
    silt_list_append(&c->cells, &x->link);
    c->cell_count++;
    silt_sandbox_hold(c->sandbox);
    *ret = x; /* before any callback */
    if (c->state == SILT_CONTEXT_IDLE)
        silt_code_run_begin_next(c);
    return 0;
}

static void send_code(struct silt_code_run *x)
{
    struct silt_context *c = x->context;
    silt_auto_buf line;
    silt_buf_init(&line, LINE_SIZE_MAX);
    silt_kernel_say_run(&line, x->id, (silt_slice){x->code, x->code_len});
    free(x->code);
    x->code = NULL;
    c->sandbox->registry->unstarted_bytes -= x->code_len;
    x->code_len = 0;
    silt_kernel_send(&c->kernel, &line);
}

void silt_code_run_begin_next(struct silt_context *c)
{
    struct silt_code_run *x = silt_list_first(&c->cells, struct silt_code_run, link);
    if (x == NULL || c->state != SILT_CONTEXT_IDLE)
        return;
    silt_context_enter(c, SILT_CONTEXT_RUNNING);
    c->row.used_ms = silt_clock_wall_ms();
    int64_t deadline_ms = x->timeout_ms > 0 ? c->row.used_ms + x->timeout_ms : 0;
    if (x->timeout_ms > 0)
        silt_loop_after(c->sandbox->registry->loop, &c->deadline, x->timeout_ms);
    /* Also if the previous run's deadline is still there. */
    if (deadline_ms != c->row.deadline_ms) {
        c->row.deadline_ms = deadline_ms;
        silt_context_save(c);
    }
    if (x->sink != NULL && x->sink->began != NULL)
        x->sink->began(x->sink);
    if (x->context != NULL)
        send_code(x);
}

void silt_code_run_leave(struct silt_code_run *x)
{
    x->sink = NULL;
    if (x->context == NULL)
        return;
    if (x->asked)
        (void)silt_code_run_answer(x, (silt_slice){NULL, 0}); /* no client can answer */
    silt_kernel_resume(&x->context->kernel);
}

void silt_code_run_resume(struct silt_code_run *x)
{
    if (x->context != NULL)
        silt_kernel_resume(&x->context->kernel);
}

static void answer(struct silt_context *c, uint64_t id, silt_slice text)
{
    silt_auto_buf line;
    silt_buf_init(&line, LINE_SIZE_MAX);
    silt_kernel_say_input(&line, id, text, text.data == NULL);
    silt_kernel_send(&c->kernel, &line);
}

bool silt_code_run_answer(struct silt_code_run *x, silt_slice text)
{
    if (!x->asked || x->context == NULL)
        return false;
    x->asked = false;
    answer(x->context, x->id, text);
    return true;
}

bool silt_code_run_answer_in(struct silt_context *c, silt_slice text)
{
    struct silt_code_run *x = current(c);
    return x != NULL && silt_code_run_answer(x, text);
}

/* ---- lines from the kernel ---- */

static void hold(struct silt_code_run *x, int stream, silt_slice bytes)
{
    memcpy(x->held + x->held_len, bytes.data, bytes.len);
    if (x->held_len == 0)
        silt_loop_after(x->context->sandbox->registry->loop, &x->held_timer, HELD_MS);
    x->held_len += bytes.len;
    x->held_stream = stream;
}

static void tell_output(struct silt_code_run *x, int stream, silt_slice bytes)
{
    if (stream != x->held_stream || bytes.len > HELD_MAX - x->held_len)
        tell_held(x);
    if (x->context == NULL)
        return;
    bool whole = bytes.data[bytes.len - 1] == '\n';
    if (bytes.len <= HELD_MAX && (!whole || x->held_len > 0)) {
        hold(x, stream, bytes);
        if (whole)
            tell_held(x);
    } else if (hears(x->context, x)) {
        x->sink->output(x->sink, stream, bytes);
    }
}

/* A run of a previous siltd has the same output limit: others may wait for its end. */
static void count_lost(struct silt_context *c, size_t len)
{
    c->lost_bytes += len;
    if (c->lost_bytes > c->sandbox->registry->settings.output_max && !c->interrupted)
        (void)silt_context_interrupt(c);
}

void silt_code_run_on_output(struct silt_context *c, int stream, silt_slice bytes)
{
    struct silt_code_run *x = current(c);
    uint64_t max = c->sandbox->registry->settings.output_max;
    if (c->state == SILT_CONTEXT_UNSURE)
        count_lost(c, bytes.len);
    if (x == NULL || x->cause == SILT_CODE_RUN_FLOOD)
        return;
    uint64_t room = max - x->output_bytes;
    silt_slice told = {bytes.data, bytes.len < room ? bytes.len : (size_t)room};
    x->output_bytes += told.len;
    c->sandbox->registry->counts.out_bytes += told.len;
    if (told.len > 0)
        tell_output(x, stream, told);
    if (told.len == bytes.len || x->context == NULL || x->cause != SILT_CODE_RUN_FINE)
        return; /* already being ended for another reason */
    x->cause = SILT_CODE_RUN_FLOOD;
    (void)silt_context_interrupt(c);
}

bool silt_code_run_is_full(struct silt_context *c)
{
    struct silt_code_run *x = current(c);
    return x != NULL && x->sink != NULL && x->cause != SILT_CODE_RUN_FLOOD
           && x->sink->full(x->sink);
}

static void ask(struct silt_code_run *x, const struct silt_kernel_said *said)
{
    x->asked = true;
    if (x->sink != NULL && x->sink->asked != NULL)
        x->sink->asked(x->sink, said);
    else
        (void)silt_code_run_answer(x, (silt_slice){NULL, 0});
}

/* Where we ended the run, its end says how; the interrupt was only the means. */
static void tell_error(struct silt_code_run *x, const struct silt_kernel_said *said)
{
    if (x->sink != NULL && x->cause == SILT_CODE_RUN_FINE)
        x->sink->error(x->sink, said);
}

static void be_done(struct silt_context *c, struct silt_code_run *x, uint32_t count)
{
    c->row.count = count;
    c->row.used_ms = silt_clock_wall_ms();
    if (c->interrupted)
        silt_context_settle(c);
    else
        silt_context_enter(c, SILT_CONTEXT_IDLE);
    end(x, count, NULL);
    silt_code_run_begin_next(c);
}

void silt_code_run_on_line(struct silt_context *c, const struct silt_kernel_said *said)
{
    struct silt_code_run *x = current(c);
    /* The client that could answer is gone with the previous siltd. */
    if (c->state == SILT_CONTEXT_UNSURE && said->word == SILT_KERNEL_INPUT)
        answer(c, said->id, (silt_slice){NULL, 0});
    if (x == NULL || said->id != x->id)
        return; /* from an earlier run, e.g. a thread it left behind */
    tell_held(x);
    if (x->context == NULL)
        return;
    switch (said->word) {
    case SILT_KERNEL_RESULT:
        if (hears(c, x))
            x->sink->result(x->sink, said);
        return;
    case SILT_KERNEL_ERROR:
        tell_error(x, said);
        return;
    case SILT_KERNEL_INPUT:
        ask(x, said);
        return;
    case SILT_KERNEL_DONE:
        be_done(c, x, said->count);
        return;
    case SILT_KERNEL_EXIT:
    case SILT_KERNEL_READY:
    case SILT_KERNEL_STALE:
    case SILT_KERNEL_FAILED:
    case SILT_KERNEL_PONG:
    case SILT_KERNEL_WORD_MAX:
        return;
    }
}

void silt_code_run_on_time(struct silt_context *c)
{
    struct silt_code_run *x = current(c);
    if (c->interrupted && c->sandbox->registry->loop->now_ms >= c->patience_ms) {
        silt_context_kill(
            c, x != NULL && x->cause == SILT_CODE_RUN_TIMEOUT ? "timeout" : "signal",
            "the code did not stop when it was interrupted, so its context was ended");
        return;
    }
    if (!c->interrupted && x != NULL && x->cause == SILT_CODE_RUN_FINE)
        x->cause = SILT_CODE_RUN_TIMEOUT;
    (void)silt_context_interrupt(c);
}

void silt_code_run_end_all(struct silt_context *c, const struct silt_error *e)
{
    struct silt_code_run *x = current(c);
    if (x != NULL)
        end(x, ++c->row.count, &c->death); /* it counts, too */
    while ((x = silt_list_first(&c->cells, struct silt_code_run, link)) != NULL) {
        struct silt_code_run_sink *sink = finish(x);
        if (sink != NULL)
            sink->failed(sink, e, c->death.cause[0] != 0 ? &c->death : NULL);
    }
}

void silt_code_run_forget_all(struct silt_context *c)
{
    silt_list_each(it, &c->cells)
    {
        struct silt_code_run *x = silt_outer(it, struct silt_code_run, link);
        c->sandbox->registry->unstarted_bytes -= x->code_len;
        silt_loop_cancel(c->sandbox->registry->loop, &x->held_timer);
        free_cell(&x->grave);
    }
}
