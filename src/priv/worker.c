/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/worker.h"
#include "base/own.h"
#include "engine/launch/launch.h"
#include "engine/storage/pool_room.h"
#include "priv/create.h"
#include "priv/ops.h"
#include "priv/unexpected_fds.h"

#include <errno.h>
#include <poll.h>

static bool await(int siltd, short events, int wait_ms)
{
    struct pollfd p = {.fd = siltd, .events = events};
    return poll(&p, 1, wait_ms) != 0;
}

/* Only between requests, never while one waits. */
static void prepare(struct silt_priv_helper *u, int siltd)
{
    while (!await(siltd, POLLIN, 0) && silt_priv_refill(u))
        ;
}

static int send_answer(int siltd, const struct silt_parcel *out)
{
    struct silt_error e;
    while (silt_fd_send(siltd, out, &e) < 0) {
        if (e.sys != EAGAIN)
            return -1;
        (void)await(siltd, POLLOUT, -1);
    }
    return 0;
}

/* The desk is marked from before the start until the response is sent. */
static void serve(struct silt_priv_helper *u, int siltd, struct silt_worker_desk *desk,
                  struct silt_priv_job *job)
{
    *desk =
        (struct silt_worker_desk){.seq = job->request.seq, .slot = job->request.slot, .busy = 1};
    silt_priv_ops_run(u, job);
    int sent = send_answer(siltd, &job->out);
    desk->busy = 0;
    if (sent < 0)
        silt_priv_ops_undo(u, job);
    silt_parcel_close(&job->out);
    silt_priv_close_later(u);
    if (u->claimed >= 0)
        silt_volume_forget_ready(u->claimed);
    silt_close_fd(&u->claimed);
}

/* Waits in poll, not in the receive: a worker killed inside the receive could lose a request. */
int silt_worker_run(struct silt_priv_helper *u, int siltd, struct silt_worker_desk *desk,
                    struct silt_error *e)
{
    static struct silt_priv_job job;
    if (silt_launch_prepare(e) < 0 || silt_fd_nonblock(siltd, e) < 0
        || silt_net_gate_open(&u->gate, e) < 0)
        return -1;
    for (;;) {
        prepare(u, siltd);
        (void)await(siltd, POLLIN, -1);
        job.in = (struct silt_parcel){.data = &job.request, .len = sizeof(job.request)};
        int got = silt_fd_recv(siltd, &job.in, e);
        if (got == 0 || (got < 0 && e->code == SILT_GONE))
            return 0;
        if (got < 0 && e->code != SILT_PROTOCOL && e->sys != EAGAIN)
            return -1;
        /* siltd expects responses to nothing else */
        if (got > 0 && job.in.len == sizeof(job.request))
            serve(u, siltd, desk, &job);
        silt_unexpected_fds_close(&job.in);
    }
}

/* The worker may have died while the volume was outside the quota group of all (priv/create.c). */
static void rejoin(const struct silt_volumes *v, uint32_t slot)
{
    struct silt_error ignored;
    silt_auto_fd volume = -1;
    if (silt_volume_open(v, slot, &volume, &ignored) == 0 && silt_volume_join(v, volume))
        silt_pool_room_rescan(v);
}

void silt_worker_answer_for(const struct silt_priv_helper *u, int siltd,
                            struct silt_worker_desk *desk)
{
    struct silt_priv_answer a = {.seq = desk->seq, .slot = desk->slot};
    struct silt_parcel out = {.data = &a, .len = sizeof(a)};
    if (!desk->busy)
        return;
    desk->busy = 0;
    rejoin(&u->volumes, desk->slot);
    (void)silt_fail(&a.body.error, SILT_INTERRUPTED, "the worker of silt-priv died");
    if (siltd >= 0)
        (void)send_answer(siltd, &out);
}
