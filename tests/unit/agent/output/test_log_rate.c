/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of the logs, without a process. */
#include "agent/output/log_rate.h"
#include "unit/base/unit.h"
#include "wire/log.h"

struct waiter {
    struct silt_channel_wait wait;
    unsigned freed;
};

static void on_free(struct silt_channel_wait *w)
{
    silt_outer(w, struct waiter, wait)->freed++;
}

static struct waiter new_waiter(void)
{
    return (struct waiter){.wait.on_free = on_free};
}

/* How many pieces go before somebody has to wait. */
static size_t spend_all(struct silt_log_rate *p, size_t bytes)
{
    size_t count = 0;
    for (; !silt_log_rate_is_over(p); count++)
        silt_log_rate_spend(p, bytes);
    return count;
}

static void check_windows(size_t bytes, size_t pieces)
{
    struct silt_loop loop;
    struct silt_log_rate p = {0};
    struct silt_error e;
    struct waiter w = new_waiter();
    assert_int_equal(silt_loop_open(&loop, &e), 0);
    silt_log_rate_init(&p, &loop);
    silt_list_init(&w.wait.link);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(spend_all(&p, bytes), pieces);
        silt_log_rate_wait(&p, &w.wait);
        silt_log_rate_wait(&p, &w.wait);
        assert_int_equal(w.freed, i - 1);
        while (silt_log_rate_is_over(&p))
            assert_true(silt_loop_turn(&loop, -1, &e) >= 0);
        assert_int_equal(w.freed, i);
    }
    silt_loop_close(&loop);
}

TEST(pace_of_large_pieces_is_that_of_their_bytes)
{
    check_windows(SILT_LOG_RECORD_MAX, 35);
}

TEST(pace_of_small_pieces_is_that_of_their_number)
{
    check_windows(1, 512);
}

TEST(pace_of_who_does_little_is_free)
{
    struct silt_loop loop;
    struct silt_log_rate p = {0};
    struct silt_error e;
    assert_int_equal(silt_loop_open(&loop, &e), 0);
    silt_log_rate_init(&p, &loop);
    for (int i = 0; i < 500; i++) {
        assert_false(silt_log_rate_is_over(&p));
        silt_log_rate_spend(&p, 1);
    }
    assert_false(silt_log_rate_is_over(&p));
    silt_loop_close(&loop);
}
