/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/output/input.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void answer(struct silt_input *in, uint32_t flags)
{
    struct silt_say s = {.type = SILT_AGENT_STDIN_TAKEN,
                         .flags = flags,
                         .id = in->id,
                         .head = {(const char *)&in->taken, sizeof(in->taken)}};
    if (!in->owed)
        return;
    in->owed = false;
    silt_channel_say(in->channel, &s);
}

static void shut(struct silt_input *in)
{
    silt_loop_forget(in->loop, &in->watch);
    silt_close_fd(&in->watch.fd);
    silt_buf_fini(&in->rest);
    in->wanted = false;
}

/* 0: everything was written, or will be when there is room; -1: the pipe has no reader. */
static int push(struct silt_input *in)
{
    while (in->rest.len > 0) {
        ssize_t n = write(in->watch.fd, in->rest.data, in->rest.len);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            silt_buf_drop(&in->rest, (size_t)n);
            in->taken += (uint64_t)n;
        }
    }
    return 0;
}

static void go_on(struct silt_input *in)
{
    if (push(in) < 0) {
        shut(in);
        answer(in, SILT_STDIN_GONE);
    } else if (in->rest.len > 0) {
        silt_loop_watch(in->loop, &in->watch, EPOLLOUT);
    } else {
        silt_loop_forget(in->loop, &in->watch);
        silt_buf_fini(&in->rest); /* many commands have an input, few use it */
        if (in->closing)
            shut(in);
        answer(in, 0);
    }
}

static void on_ready(struct silt_watch *w, uint32_t events)
{
    (void)events; /* a closed reader shows when we write */
    go_on(silt_outer(w, struct silt_input, watch));
}

void silt_input_init(struct silt_input *in, struct silt_loop *loop, struct silt_channel *channel)
{
    *in = (struct silt_input){
        .loop = loop, .channel = channel, .watch = {.fd = -1, .on_ready = on_ready}};
    silt_buf_init(&in->rest, SILT_INPUT_MAX);
}

void silt_input_fini(struct silt_input *in)
{
    silt_close_fd(&in->watch.fd);
    silt_buf_fini(&in->rest);
}

void silt_input_use(struct silt_input *in, int fd)
{
    in->watch.fd = fd;
    if (in->rest.len > 0 || in->closing)
        go_on(in);
}

int silt_input_open(struct silt_input *in, int *ret_theirs, struct silt_error *e)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "create a pipe");
    *ret_theirs = pair[0];
    if (fcntl(pair[1], F_SETFL, O_NONBLOCK) < 0) {
        (void)close(pair[1]);
        return silt_fail_errno(e, "prepare a pipe");
    }
    silt_input_use(in, pair[1]);
    return 0;
}

void silt_input_add(struct silt_input *in, silt_slice bytes, bool last)
{
    if (!in->owed)
        in->taken = 0;
    in->owed = true;
    if (!in->wanted || in->closing) {
        answer(in, SILT_STDIN_GONE);
        return;
    }
    if (bytes.len > SILT_INPUT_MAX - in->rest.len)
        return; /* siltd sent more before its answer: a protocol violation, not answered */
    silt_buf_add(&in->rest, bytes);
    in->closing = last;
    if (in->watch.fd >= 0)
        go_on(in);
}

void silt_input_renew(struct silt_input *in)
{
    in->owed = false;
}

void silt_input_close(struct silt_input *in)
{
    shut(in);
}
