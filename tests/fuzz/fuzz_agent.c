/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile silt-init, and callers who come and go meanwhile: whatever it says, and whenever, each
 * caller is told exactly once, and when its sandbox is destroyed nothing of it is left. The input
 * is a row of steps: what happens, to whom, how many bytes follow, and those bytes. */
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sandbox/process/log_follower.h"
#include "unit/sandbox/harness.h"

enum { CALLERS = 16, SEEN = 8 };

static struct caller {
    struct silt_exec_sink sink;
    struct silt_turn turn;
    struct silt_exec *exec; /* NULL: none, or it left */
    struct silt_process_watch watch;
    struct silt_log_follower_sink reader;
    bool reads;    /* the log of a process, to its end */
    unsigned owed; /* answers */
} callers[CALLERS];
static struct harness h;
static struct silt_sandbox *box;
static struct silt_error e;
static uint64_t seen[SEEN]; /* what siltd named last: sessions and execs */
static unsigned next_seen;

static void on_output(struct silt_exec_sink *s, int stream, silt_slice bytes)
{
    struct caller *c = silt_outer(s, struct caller, sink);
    demand(c->exec != NULL && (stream == 1 || stream == 2) && bytes.len > 0);
    if (stream == 1)
        silt_exec_credit(c->exec, bytes.len);
}

static void on_told(struct caller *c)
{
    demand(c->owed > 0);
    c->owed--;
    c->exec = NULL;
}

static void on_ended(struct silt_exec_sink *s, const struct silt_agent_end *end)
{
    (void)end;
    on_told(silt_outer(s, struct caller, sink));
}

static void on_failed(struct silt_exec_sink *s, const struct silt_error *why)
{
    (void)why;
    on_told(silt_outer(s, struct caller, sink));
}

/* Processes: each is told how its start went; who reads its log comes to an end. */

static void on_piece(struct silt_log_follower_sink *s, const struct silt_log_reader_piece *piece)
{
    (void)s;
    demand(piece->bytes.len <= SILT_LOG_RECORD_MAX);
}

static void on_gap(struct silt_log_follower_sink *s, uint64_t bytes, enum silt_gap why,
                   uint64_t cursor)
{
    (void)s;
    (void)why;
    (void)cursor;
    demand(bytes > 0);
}

static void on_over(struct silt_log_follower_sink *s, uint64_t cursor)
{
    (void)cursor;
    silt_outer(s, struct caller, reader)->reads = false;
}

static void on_unreadable(struct silt_log_follower_sink *s, const struct silt_error *why)
{
    (void)why;
    silt_outer(s, struct caller, reader)->reads = false;
}

static void on_event(struct silt_process_watch *w, struct silt_process *p,
                     enum silt_process_event what, const struct silt_error *why)
{
    struct caller *c = silt_outer(w, struct caller, watch);
    struct silt_log_follower_options o = {.hold = p->holds};
    (void)why;
    on_told(c);
    if (what != SILT_PROCESS_STARTED || c->reads)
        return;
    c->reader = (struct silt_log_follower_sink){
        .output = on_piece, .gap = on_gap, .over = on_over, .failed = on_unreadable};
    c->reads = true;
    (void)silt_log_follower_start(p, &o, &c->reader);
}

static void on_turn(struct silt_turn *t, struct silt_session *s, const struct silt_error *why)
{
    if (s != NULL && why == NULL)
        silt_session_close(s, t);
    else
        on_told(silt_outer(t, struct caller, turn));
}

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *why)
{
    (void)w;
    demand(why == NULL);
    box = s;
}

/* silt-priv does all that it is asked, at once. */
static void settle(void)
{
    struct silt_priv_request q;
    struct harness_frame f;
    while (harness_asked(&h, &q))
        harness_answer(&h, &q, true);
    while (h.agent >= 0 && harness_told(&h, &f) != 0)
        if (f.frame.id != 0)
            seen[next_seen++ % SEEN] = f.frame.id;
    while (harness_told_super(&h) != 0)
        continue;
}

static void start_process(struct caller *c, struct silt_session *s, unsigned which)
{
    struct silt_process *p;
    struct silt_process_request q = {
        .exec = {.mode = which & 1 ? SILT_EXEC_BACKGROUND : SILT_EXEC_PLAIN,
                 .command = SILT_LIT("true"),
                 .flags = which & 2 ? SILT_START_HOLD : 0}};
    c->watch.on_event = on_event;
    if (silt_process_start(box, which & 1 ? s : NULL, &q, &c->watch, &p, &e) < 0)
        on_told(c);
    else if (which & 4)
        silt_process_kill(p, 15, which & 8 ? 100 : 0);
}

static void start(struct caller *c, unsigned which)
{
    struct silt_session_options o = {0};
    struct silt_session *s = silt_session_find(box, SILT_LIT("s"));
    struct silt_exec_request q = {.mode = which % 4 > 0 ? which % 4 : SILT_EXEC_PLAIN,
                                  .command = SILT_LIT("true")};
    if (c->owed > 0 || c->reads || box->state != SILT_SANDBOX_RUNNING)
        return;
    if (s == NULL && silt_session_new(box, SILT_LIT("s"), &o, &s, &e) < 0)
        return;
    *c = (struct caller){.sink = {.output = on_output, .ended = on_ended, .failed = on_failed},
                         .turn = {.go = on_turn},
                         .owed = 1};
    if (which & 128)
        silt_session_enter(s, &c->turn); /* to delete it */
    else if (which & 64)
        start_process(c, s, which);
    else if (silt_exec_start(box, q.mode == SILT_EXEC_PLAIN ? NULL : s, &q, &c->sink, &c->exec, &e)
             < 0)
        on_told(c);
}

static void leave(struct caller *c)
{
    if (c->exec == NULL)
        return;
    silt_exec_leave(c->exec);
    on_told(c);
}

static void be_running(void)
{
    struct silt_waiter w = {.on_ready = on_ready};
    box = NULL;
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    settle();
    demand(box != NULL && box->state == SILT_SANDBOX_RUNNING);
    harness_say(&h, SILT_AGENT_WELCOME, 0, 0, &h.registry.epoch, sizeof(uint64_t));
}

static void say(unsigned what, unsigned which, silt_slice bytes)
{
    char body[sizeof(struct silt_error)] = "";
    size_t len =
        what & 64 ? sizeof(body) : bytes.len; /* as much as the largest needs, or as it is */
    if (bytes.len > 0)
        memcpy(body, bytes.data, bytes.len);
    harness_say(&h, what % (SILT_AGENT_SAY_MAX + 1), which >> 4, seen[which % SEEN], body, len);
}

static void clean_up(void)
{
    harness_close(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (h.directory[0] == 0) {
        silt_log_open("fuzz", SILT_LOG_ERROR);
        demand(harness_open(&h) == 0 && atexit(clean_up) == 0);
    }
    memset(callers, 0, sizeof(callers));
    be_running();
    for (size_t at = 0; at + 3 <= size;) {
        unsigned what = data[at], which = data[at + 1];
        size_t len = data[at + 2] < size - at - 3 ? data[at + 2] : size - at - 3;
        if (what < 192)
            say(what, which, (silt_slice){(const char *)data + at + 3, len});
        else if (what < 240)
            start(&callers[what % CALLERS], which);
        else
            leave(&callers[what % CALLERS]);
        settle();
        if (box->state != SILT_SANDBOX_RUNNING)
            be_running();
        at += 3 + len;
    }
    silt_sandbox_destroy(box, NULL);
    settle();
    for (int i = 0; i < CALLERS; i++)
        for (int turn = 0; turn < 500 && callers[i].reads; turn++) /* a thread reads the log */
            demand(silt_loop_turn(&h.loop, 10, &e) == 0);
    settle();
    for (int i = 0; i < CALLERS; i++)
        demand(callers[i].owed == 0 && !callers[i].reads);
    demand(h.registry.slots_used == 0 && h.registry.unstarted_bytes == 0
           && h.registry.cold_starts == 0);
    return 0;
}
