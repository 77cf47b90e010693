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
