/* SPDX-License-Identifier: Apache-2.0 */
/* The test plays silt-init, which does not read for a while. */
#include "harness.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

static struct harness h;
static struct silt_sandbox *box;

static void on_ready(struct silt_waiter *w, struct silt_sandbox *s, const struct silt_error *e)
{
    (void)w;
    (void)e;
    box = s;
}

static void set_up(void)
{
    struct silt_priv_request q;
    static struct silt_waiter w;
    assert_int_equal(harness_open(&h), 0);
    w = (struct silt_waiter){.on_ready = on_ready};
    silt_registry_use(&h.registry, SILT_LIT("box"), &w);
    assert_true(harness_asked(&h, &q));
    harness_answer(&h, &q, true);
    harness_welcome(&h);
    assert_non_null(box);
}

static void fill_channel(void)
{
    const struct silt_frame_out ping = {.type = SILT_AGENT_PING};
    while (silt_list_empty(&box->channel.unsent))
        silt_channel_send(box, &ping);
}

static void read_channel(void)
{
    struct harness_frame f;
    while (harness_told(&h, &f) != 0)
        silt_close_fd(&f.fd);
}

/* Between the two this process can open no descriptor. */
enum { LIMIT = 256 };
static int taken[LIMIT], taken_count;
static struct rlimit before;

static void take_all_descriptors(void)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, before.rlim_max}), 0);
    while (taken_count < LIMIT && (taken[taken_count] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
        taken_count++;
}

static void give_descriptors_back(void)
{
    while (taken_count > 0)
        silt_close_fd(&taken[--taken_count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

struct note {
    struct silt_exec_sink sink;
    int failed;
    struct silt_error error;
};

static void on_failed(struct silt_exec_sink *sink, const struct silt_error *e)
{
    struct note *n = silt_outer(sink, struct note, sink);
    n->failed++;
    n->error = *e;
}

static void on_ended(struct silt_exec_sink *sink, const struct silt_agent_end *end)
{
    (void)sink;
    (void)end;
    fail();
}

TEST(a_lack_of_descriptors_fails_the_request_and_not_the_sandbox)
{
    struct note n = {.sink = {.ended = on_ended, .failed = on_failed}};
    set_up();
    fill_channel();
    take_all_descriptors();
    silt_exec_hand_over(box, 77, 5, (const int[]){0, 1}, 2, &n.sink);
    give_descriptors_back();
    read_channel();
    assert_int_equal(box->state, SILT_SANDBOX_RUNNING);
    assert_int_equal(n.failed, 1);
    assert_int_equal(n.error.sys, EMFILE);
    harness_close(&h);
}

TEST(handles_that_could_not_be_kept_are_fetched_again)
{
    struct silt_priv_request q;
    const struct silt_frame_out f = {
        .type = SILT_AGENT_HANDLES, .fds = (const int[]){0, 1}, .nfds = 2};
    set_up();
    fill_channel();
    take_all_descriptors();
    silt_channel_send(box, &f);
    give_descriptors_back();
    read_channel();
    assert_int_equal(box->state, SILT_SANDBOX_RUNNING);
    assert_true(harness_asked(&h, &q));
    assert_int_equal(q.op, SILT_PRIV_HANDLES);
    harness_close(&h);
}
