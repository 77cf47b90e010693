/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/ask.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sys/socket.h>

/* The test plays silt-priv at the other end. */
struct rig {
    struct silt_loop loop;
    struct silt_priv_ask *ask;
    int far;
};

struct heard {
    int times;
    struct silt_priv_answer answer;
    int nfds;
};

static void on_answer(void *context, const struct silt_priv_answer *answer, int *fds, int nfds)
{
    struct heard *h = context;
    h->times++;
    h->answer = *answer;
    h->nfds = nfds;
    for (int i = 0; i < nfds; i++)
        (void)close(fds[i]);
}

/* Deadlines pass when a test says so. */
static int64_t skipped_ms;

int64_t __real_silt_clock_ms(void);
int64_t __wrap_silt_clock_ms(void);
int64_t __wrap_silt_clock_ms(void)
{
    return __real_silt_clock_ms() + skipped_ms;
}

static void open_rig(struct rig *r)
{
    int pair[2];
    struct silt_error e;
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    assert_int_equal(silt_loop_open(&r->loop, &e), 0);
    assert_int_equal(silt_priv_ask_open(&r->loop, pair[0], &r->ask, &e), 0);
    r->far = pair[1];
}

static void close_rig(struct rig *r)
{
    silt_priv_ask_close(r->ask);
    silt_loop_close(&r->loop);
    silt_close_fd(&r->far);
}

static void turn(struct rig *r)
{
    struct silt_error e;
    assert_int_equal(silt_loop_turn(&r->loop, 0, &e), 0);
}

static void ask_stat(struct rig *r, uint32_t slot, struct heard *h)
{
    struct silt_priv_request q = {.op = SILT_PRIV_STAT, .slot = slot};
    silt_priv_ask(r->ask, &q, NULL, 0, on_answer, h);
}

static void ask_change(struct rig *r, uint32_t op, uint32_t slot, struct heard *h)
{
    struct silt_priv_request q = {.op = op, .slot = slot};
    silt_priv_ask(r->ask, &q, NULL, 0, on_answer, h);
}

static void pass_deadline(struct rig *r)
{
    skipped_ms += 31000;
    turn(r);
}

static bool is_asked(int far)
{
    char byte;
    return recv(far, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static struct silt_priv_request take(int far)
{
    struct silt_priv_request q;
    struct silt_parcel in = {.data = &q, .len = sizeof(q)};
    struct silt_error e;
    assert_int_equal(silt_fd_recv(far, &in, &e), 1);
    assert_int_equal(in.len, sizeof(q));
    silt_parcel_close(&in);
    return q;
}

static void reply(int far, const struct silt_priv_request *q, int fd)
{
    struct silt_priv_answer a = {.seq = q->seq, .slot = q->slot, .ok = 1};
    struct silt_parcel out = {.data = &a, .len = sizeof(a), .fds = {fd}, .nfds = fd >= 0};
    struct silt_error e;
    assert_int_equal(silt_fd_send(far, &out, &e), 0);
}

TEST(answers_find_their_questions_in_any_order)
{
    struct rig r;
    struct heard one = {0}, two = {0};
    open_rig(&r);
    ask_stat(&r, 1, &one);
    ask_stat(&r, 2, &two);
    struct silt_priv_request first = take(r.far), second = take(r.far);
    reply(r.far, &second, STDIN_FILENO);
    turn(&r);
    assert_int_equal(one.times, 0);
    assert_int_equal(two.times, 1);
    assert_int_equal(two.nfds, 1);
    reply(r.far, &first, -1);
    turn(&r);
    assert_int_equal(one.times, 1);
    assert_int_equal(one.answer.slot, 1);
    close_rig(&r);
}

TEST(the_death_of_the_channel_fails_what_was_sent)
{
    struct rig r;
    struct heard h = {0};
    open_rig(&r);
    ask_stat(&r, 1, &h);
    (void)take(r.far);
    silt_close_fd(&r.far);
    turn(&r);
    assert_int_equal(h.times, 1);
    assert_int_equal(h.answer.ok, 0);
    assert_int_equal(h.answer.body.error.code, SILT_INTERRUPTED);
    close_rig(&r);
}

TEST(questions_wait_for_a_new_channel)
{
    struct rig r;
    struct heard h = {0};
    int pair[2];
    struct silt_error e;
    open_rig(&r);
    silt_close_fd(&r.far);
    turn(&r);
    ask_stat(&r, 7, &h);
    turn(&r);
    assert_int_equal(h.times, 0);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    silt_priv_ask_replace(r.ask, pair[0]);
    r.far = pair[1];
    struct silt_priv_request q = take(r.far);
    assert_int_equal(q.slot, 7);
    reply(r.far, &q, -1);
    turn(&r);
    assert_int_equal(h.times, 1);
    assert_int_equal(h.answer.ok, 1);
    close_rig(&r);
}

TEST(more_questions_than_the_socket_holds_are_queued)
{
    enum { MANY = 3000 };
    static struct heard heard[MANY];
    struct rig r;
    open_rig(&r);
    for (uint32_t i = 0; i < MANY; i++)
        ask_stat(&r, i, &heard[i]);
    for (uint32_t i = 0; i < MANY; i++) {
        struct silt_priv_request q = take(r.far);
        assert_int_equal(q.slot, i);
        reply(r.far, &q, -1);
        turn(&r);
        turn(&r);
    }
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(heard[i].times, 1);
    close_rig(&r);
}

TEST(descriptors_are_taken_also_when_nobody_answers)
{
    struct rig r;
    struct heard h = {0};
    struct silt_priv_request q = {.op = SILT_PRIV_CREATE};
    int fd = dup(STDIN_FILENO);
    open_rig(&r);
    silt_priv_ask(r.ask, &q, &fd, 1, on_answer, &h);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    close_rig(&r);
    assert_int_equal(h.times, 0);
}

TEST(nonsense_from_the_other_end_ends_the_channel)
{
    struct rig r;
    struct heard h = {0};
    open_rig(&r);
    ask_stat(&r, 1, &h);
    assert_int_equal(send(r.far, "x", 1, 0), 1);
    turn(&r);
    assert_int_equal(h.times, 1);
    assert_int_equal(h.answer.body.error.code, SILT_INTERRUPTED);
    close_rig(&r);
}

TEST(one_slot_has_one_change_at_a_time)
{
    struct rig r;
    struct heard one = {0}, two = {0}, other = {0}, stat = {0};
    open_rig(&r);
    ask_change(&r, SILT_PRIV_CREATE, 1, &one);
    ask_change(&r, SILT_PRIV_DESTROY, 1, &two);
    ask_change(&r, SILT_PRIV_CREATE, 2, &other);
    ask_stat(&r, 1, &stat);
    struct silt_priv_request create = take(r.far);
    assert_int_equal(create.op, SILT_PRIV_CREATE);
    assert_int_equal(take(r.far).slot, 2);
    assert_int_equal(take(r.far).op, SILT_PRIV_STAT);
    assert_false(is_asked(r.far));
    reply(r.far, &create, -1);
    turn(&r);
    assert_int_equal(one.times, 1);
    assert_int_equal(take(r.far).op, SILT_PRIV_DESTROY);
    close_rig(&r);
}

TEST(a_sandbox_that_is_created_too_late_is_stopped_before_its_slot_is_used)
{
    struct rig r;
    struct heard create = {0}, destroy = {0};
    open_rig(&r);
    ask_change(&r, SILT_PRIV_CREATE, 1, &create);
    struct silt_priv_request late = take(r.far);
    pass_deadline(&r);
    assert_int_equal(create.times, 1);
    assert_int_equal(create.answer.body.error.code, SILT_TIMEOUT);
    ask_change(&r, SILT_PRIV_DESTROY, 1, &destroy);
    assert_false(is_asked(r.far));
    reply(r.far, &late, STDIN_FILENO);
    turn(&r);
    struct silt_priv_request stop = take(r.far);
    assert_int_equal(stop.op, SILT_PRIV_STOP);
    assert_int_equal(stop.slot, 1);
    assert_false(is_asked(r.far));
    reply(r.far, &stop, -1);
    turn(&r);
    assert_int_equal(take(r.far).op, SILT_PRIV_DESTROY);
    assert_int_equal(create.times, 1);
    close_rig(&r);
}

TEST(a_late_create_that_was_cut_off_is_stopped_too)
{
    struct rig r;
    struct heard create = {0}, again = {0};
    int pair[2];
    struct silt_error e;
    open_rig(&r);
    ask_change(&r, SILT_PRIV_CREATE, 1, &create);
    (void)take(r.far);
    pass_deadline(&r);
    ask_change(&r, SILT_PRIV_CREATE, 1, &again);
    silt_close_fd(&r.far);
    turn(&r);
    assert_int_equal(create.times, 1);
    assert_int_equal(silt_fd_pair(SOCK_SEQPACKET, pair, &e), 0);
    silt_priv_ask_replace(r.ask, pair[0]);
    r.far = pair[1];
    struct silt_priv_request stop = take(r.far);
    assert_int_equal(stop.op, SILT_PRIV_STOP);
    reply(r.far, &stop, -1);
    turn(&r);
    assert_int_equal(take(r.far).op, SILT_PRIV_CREATE);
    assert_int_equal(again.times, 0);
    close_rig(&r);
}

TEST(a_change_that_could_not_be_sent_in_time_is_not_sent_later)
{
    struct rig r;
    struct heard first = {0}, second = {0};
    open_rig(&r);
    ask_change(&r, SILT_PRIV_NETWORK, 1, &first);
    struct silt_priv_request late = take(r.far);
    ask_change(&r, SILT_PRIV_NETWORK, 1, &second);
    pass_deadline(&r);
    assert_int_equal(first.times + second.times, 2);
    reply(r.far, &late, -1);
    turn(&r);
    assert_false(is_asked(r.far));
    close_rig(&r);
}
