/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/context/kernel_conn.h"
#include "base/fd.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    PIECE = 60 << 10,
    PIECES_BEFORE_LINE = 32, /* more than a pipe holds, which the guest may have enlarged */
    UNSENT_MAX = 112 << 20,  /* a run's code with every byte escaped */
};

/* Shared by all: bytes are delivered before the next read. */
static char room[PIECE];

static bool reads(const struct silt_kernel *k)
{
    return k->listening && !k->held && !k->busy && k->lane.state != SILT_FAIR_QUEUE_TURN_WAITING;
}

/* A long line is read to its end even if unwanted: others wait for its place in the queue. */
static bool reads_lines(const struct silt_kernel *k)
{
    return reads(k) || (k->lane.state == SILT_FAIR_QUEUE_TURN_IN && !k->busy);
}

/* A line must end in time, but only time in which we read counts. */
static void settle_patience(struct silt_kernel *k)
{
    if (k->line.len == 0 || !reads_lines(k))
        silt_loop_cancel(k->loop, &k->patience);
    else if (k->patience.place == 0)
        silt_loop_after(k->loop, &k->patience, SILT_KERNEL_LINE_MS);
}

static uint32_t wanted(const struct silt_kernel *k, int which)
{
    if (which == SILT_KERNEL_REQUESTS)
        return k->unsent.len > 0 ? EPOLLOUT : 0;
    return (which == SILT_KERNEL_LINES ? reads_lines(k) : reads(k)) ? EPOLLIN : 0;
}

/* Updates the watches to what is wanted now. */
static void settle(struct silt_kernel *k)
{
    settle_patience(k);
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        if (k->ends[i].watch.fd >= 0)
            silt_loop_watch(k->loop, &k->ends[i].watch, wanted(k, i));
}

static void close_end(struct silt_kernel *k, int which)
{
    struct silt_watch *w = &k->ends[which].watch;
    if (w->fd < 0)
        return;
    silt_loop_forget(k->loop, w);
    silt_close_fd(&w->fd);
}

static void drop_line(struct silt_kernel *k)
{
    silt_buf_fini(&k->line);
    silt_buf_fini(&k->after);
    silt_loop_cancel(k->loop, &k->patience);
    silt_fair_queue_turn_leave(&k->lane);
}

static void fail(struct silt_kernel *k, const char *why)
{
    if (k->failed)
        return;
    k->failed = true;
    drop_line(k);
    silt_kernel_listen(k, false);
    k->on_closed(k, why);
}

static bool must_hold(struct silt_kernel *k)
{
    if (!k->held && !k->ending && k->is_full(k)) {
        k->held = true;
        settle(k);
    }
    return !reads(k);
}

/* False: nothing more there now, or not wanted. */
static bool pump(struct silt_kernel *k, int which)
{
    int fd = k->ends[which].watch.fd;
    if (fd < 0 || !k->listening || must_hold(k))
        return false;
    ssize_t n = read(fd, room, sizeof(room));
    if (n > 0)
        k->on_output(k, which, (silt_slice){room, (size_t)n});
    if (n == 0) /* all writers have closed */
        close_end(k, which);
    return n > 0;
}

static void on_output(struct silt_watch *w, uint32_t events)
{
    struct silt_kernel_end *end = silt_outer(w, struct silt_kernel_end, watch);
    (void)events;
    (void)pump(end->kernel, (int)(end - end->kernel->ends));
}

/* Output written before a line is already in the pipes when the line arrives. */
static void drain_output(struct silt_kernel *k)
{
    for (int which = SILT_KERNEL_OUT; which <= SILT_KERNEL_ERR; which++)
        for (int i = 0; i < PIECES_BEFORE_LINE && pump(k, which); i++)
            ;
}

/* Once the process is gone, the rest is bounded. */
static void keep_rest(struct silt_kernel *k, silt_slice rest)
{
    silt_buf_add(&k->line, rest);
    if (k->line.broken) {
        fail(k, "a line without an end");
        return;
    }
    if (k->line.len > SILT_KERNEL_SHORT && !k->ending)
        (void)silt_fair_queue_turn_enter(&k->lane);
    settle(k);
}

static void on_turn(struct silt_fair_queue_turn *l)
{
    settle(silt_outer(l, struct silt_kernel, lane));
}

static void take_line(struct silt_kernel *k, silt_slice last)
{
    if (k->line.len == 0) {
        k->on_line(k, last);
        return;
    }
    struct silt_buf whole = k->line;
    silt_loop_cancel(k->loop, &k->patience);
    silt_buf_init(&k->line, SILT_KERNEL_LINE_MAX);
    silt_buf_add(&whole, last);
    if (whole.broken) {
        fail(k, "a line that is too long");
    } else if (whole.len > SILT_KERNEL_LONG) {
        k->busy = true;
        k->on_long_line(k, &whole);
        settle(k);
    } else {
        k->on_line(k, silt_buf_slice(&whole));
    }
    silt_buf_fini(&whole);
    silt_fair_queue_turn_leave(&k->lane);
}

/* All lines of one piece are delivered, even if one fills the listener or ends the run: we have
 * read them already. */
static void take_bytes(struct silt_kernel *k, silt_slice bytes)
{
    const char *end;
    while (!k->failed && !k->busy && bytes.len > 0
           && (end = memchr(bytes.data, '\n', bytes.len)) != NULL) {
        size_t len = (size_t)(end - bytes.data);
        take_line(k, (silt_slice){bytes.data, len});
        bytes.data += len + 1;
        bytes.len -= len + 1;
    }
    if (k->failed || bytes.len == 0)
        return;
    if (k->busy)
        silt_buf_add(&k->after, bytes);
    else
        keep_rest(k, bytes);
}

static void count_unsent(struct silt_kernel *k, size_t before)
{
    for (size_t i = 0; i < SILT_COUNT(k->unsent_sums); i++)
        if (k->unsent_sums[i] != NULL)
            *k->unsent_sums[i] += k->unsent.len - before; /* unsigned: also right if it shrank */
}

static void drop_unsent(struct silt_kernel *k)
{
    size_t before = k->unsent.len;
    silt_buf_fini(&k->unsent);
    k->unsent_at = 0;
    count_unsent(k, before);
}

static void send_unsent(struct silt_kernel *k)
{
    int fd = k->ends[SILT_KERNEL_REQUESTS].watch.fd;
    while (fd >= 0 && k->unsent_at < k->unsent.len) {
        ssize_t n = write(fd, k->unsent.data + k->unsent_at, k->unsent.len - k->unsent_at);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) { /* it is gone or will be: it ends without requests */
            k->unsent_at = k->unsent.len;
            break;
        }
        k->unsent_at += (size_t)n;
    }
    if (k->unsent_at == k->unsent.len)
        drop_unsent(k);
    settle(k);
}

/* False: nothing more there now, or not wanted. */
static bool pump_lines(struct silt_kernel *k)
{
    /* A separate buffer: handling a line may read the other pipes. */
    static char bytes[PIECE];
    drain_output(k);
    if (k->ends[SILT_KERNEL_LINES].watch.fd < 0 || !reads_lines(k))
        return false;
    ssize_t n = read(k->ends[SILT_KERNEL_LINES].watch.fd, bytes, sizeof(bytes));
    if (n > 0)
        take_bytes(k, (silt_slice){bytes, (size_t)n});
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        fail(k, NULL);
    return n > 0;
}

static void on_room(struct silt_watch *w, uint32_t events)
{
    (void)events;
    send_unsent(silt_outer(w, struct silt_kernel_end, watch)->kernel);
}

static void on_lines(struct silt_watch *w, uint32_t events)
{
    (void)events;
    (void)pump_lines(silt_outer(w, struct silt_kernel_end, watch)->kernel);
}

static void on_patience(struct silt_timer *t)
{
    fail(silt_outer(t, struct silt_kernel, patience), "a line that does not end");
}

void silt_kernel_init(struct silt_kernel *k)
{
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        k->ends[i] =
            (struct silt_kernel_end){.watch = {.fd = -1, .on_ready = on_output}, .kernel = k};
    k->ends[SILT_KERNEL_REQUESTS].watch.on_ready = on_room;
    k->ends[SILT_KERNEL_LINES].watch.on_ready = on_lines;
    k->patience = (struct silt_timer){.on_time = on_patience};
    k->lane.state = SILT_FAIR_QUEUE_TURN_OUT;
    k->lane.on_turn = on_turn;
    silt_list_init(&k->lane.link);
    k->listening = k->held = k->failed = k->ending = k->busy = false;
    k->unsent_at = 0;
    silt_buf_init(&k->line, SILT_KERNEL_LINE_MAX);
    silt_buf_init(&k->after, PIECE);
    silt_buf_init(&k->unsent, UNSENT_MAX);
}

/* In builds without this protection lines come over a socket; reading must discard descriptors,
 * too. */
static int make_ends(int which, int pair[2], struct silt_error *e)
{
    if (which == SILT_KERNEL_LINES && silt_without("context_pipes"))
        return silt_fd_pair(SOCK_STREAM, pair, e);
    return pipe2(pair, O_CLOEXEC) < 0 ? silt_fail_errno(e, "create a pipe") : 0;
}

/* A pipe can be reopened inside through /proc. Our uid does not exist in the sandbox, so modes
 * decide: /dev/stdout is for everybody there, the pipes between siltd and the interpreter are
 * not. */
static int make_pipe(int which, int *ret_ours, int *ret_theirs, struct silt_error *e)
{
    int pair[2];
    bool writes = which == SILT_KERNEL_REQUESTS;
    if (make_ends(which, pair, e) < 0)
        return -1;
    *ret_ours = pair[writes];
    *ret_theirs = pair[!writes];
    if (which == SILT_KERNEL_OUT || which == SILT_KERNEL_ERR)
        (void)fchmod(*ret_theirs, 0622);
    return silt_fd_nonblock(*ret_ours, e); /* theirs is another file description */
}

static int make_all(int ours[SILT_KERNEL_FDS], int theirs[SILT_KERNEL_FDS], struct silt_error *e)
{
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        if (make_pipe(i, &ours[i], &theirs[i], e) < 0)
            return -1;
    return 0;
}

int silt_kernel_make(int ret_ours[SILT_KERNEL_FDS], int ret_theirs[SILT_KERNEL_FDS],
                     struct silt_error *e)
{
    int ours[SILT_KERNEL_FDS] = {-1, -1, -1, -1};
    int theirs[SILT_KERNEL_FDS] = {-1, -1, -1, -1};
    if (make_all(ours, theirs, e) < 0) {
        for (int i = 0; i < SILT_KERNEL_FDS; i++) {
            silt_close_fd(&ours[i]);
            silt_close_fd(&theirs[i]);
        }
        return -1;
    }
    memcpy(ret_ours, ours, sizeof(ours));
    memcpy(ret_theirs, theirs, sizeof(theirs));
    return 0;
}

int silt_kernel_open(struct silt_kernel *k, int ret_theirs[SILT_KERNEL_FDS], struct silt_error *e)
{
    int ours[SILT_KERNEL_FDS];
    if (silt_kernel_make(ours, ret_theirs, e) < 0)
        return -1;
    silt_kernel_adopt(k, ours);
    return 0;
}

void silt_kernel_adopt(struct silt_kernel *k, const int fds[SILT_KERNEL_FDS])
{
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        k->ends[i].watch.fd = fds[i];
}

void silt_kernel_fds(const struct silt_kernel *k, int ret[SILT_KERNEL_FDS])
{
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        ret[i] = k->ends[i].watch.fd;
}

void silt_kernel_listen(struct silt_kernel *k, bool on)
{
    k->listening = on;
    k->held = false;
    settle(k);
}

void silt_kernel_resume(struct silt_kernel *k)
{
    if (!k->held)
        return;
    k->held = false;
    settle(k);
}

void silt_kernel_send(struct silt_kernel *k, struct silt_buf *line)
{
    size_t before = k->unsent.len;
    if (k->unsent.len == 0) { /* the usual case: no copy */
        silt_buf_fini(&k->unsent);
        k->unsent = *line;
        k->unsent.max = UNSENT_MAX;
        silt_buf_init(line, line->max);
    } else {
        silt_buf_add(&k->unsent, silt_buf_slice(line));
        silt_buf_clear(line);
    }
    count_unsent(k, before);
    if (k->unsent.broken)
        fail(k, "it does not read");
    else
        send_unsent(k);
}

void silt_kernel_refuse(struct silt_kernel *k, const char *why)
{
    fail(k, why);
}

/* A child of the process may still hold the pipe and write on: its output is bounded. */
static void tell_rest(struct silt_kernel *k)
{
    while (!k->failed && !k->busy && k->pieces_left-- > 0 && pump_lines(k))
        ;
    if (k->busy)
        return;
    drain_output(k);
    k->on_finished(k);
}

/* The bytes after it are short: none is a long line again. */
void silt_kernel_go_on(struct silt_kernel *k)
{
    struct silt_buf after = k->after;
    silt_buf_init(&k->after, PIECE);
    k->busy = false;
    take_bytes(k, silt_buf_slice(&after));
    silt_buf_fini(&after);
    settle(k);
    if (k->ending)
        tell_rest(k);
}

void silt_kernel_finish(struct silt_kernel *k)
{
    k->ending = true;
    k->pieces_left = PIECES_BEFORE_LINE;
    if (k->lane.state == SILT_FAIR_QUEUE_TURN_WAITING)
        silt_fair_queue_turn_leave(&k->lane);
    silt_kernel_listen(k, !k->failed);
    tell_rest(k);
}

void silt_kernel_close(struct silt_kernel *k)
{
    k->listening = k->busy = false;
    for (int i = 0; i < SILT_KERNEL_FDS; i++)
        close_end(k, i);
    drop_line(k);
    drop_unsent(k);
}
