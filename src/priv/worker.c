/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/worker.h"
#include "engine/launch.h"
#include "priv/create.h"
#include "priv/ops.h"

#include <poll.h>

static bool has_request(int siltd)
{
    struct pollfd p = {.fd = siltd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* Between requests, never while one waits. */
static void prepare(struct silt_priv_unit *u, int siltd)
{
    while (u->nnets < u->nets_wanted && !has_request(siltd)) {
        uint32_t before = u->nnets;
        silt_priv_refill(u);
        if (u->nnets == before)
            return;
    }
}

/* Marked before it begins and until the answer is out. */
static void serve(struct silt_priv_unit *u, int siltd, struct silt_worker_desk *desk,
                  struct silt_priv_job *job)
{
    struct silt_error e;
    *desk =
        (struct silt_worker_desk){.seq = job->request.seq, .slot = job->request.slot, .busy = 1};
    silt_priv_ops_run(u, job);
    int sent = silt_fd_send(siltd, &job->out, &e);
    desk->busy = 0;
    if (sent < 0)
        silt_priv_ops_undo(u, job);
    silt_parcel_close(&job->out);
    silt_close_fd(&u->later);
}

int silt_worker_run(struct silt_priv_unit *u, int siltd, struct silt_worker_desk *desk,
                    struct silt_error *e)
{
    static struct silt_priv_job job;
    if (silt_launch_prepare(e) < 0)
        return -1;
    for (;;) {
        prepare(u, siltd);
        job.in = (struct silt_parcel){.data = &job.request, .len = sizeof(job.request)};
        int got = silt_fd_recv(siltd, &job.in, e);
        if (got == 0 || (got < 0 && e->code == SILT_GONE))
            return 0;
        if (got < 0 && e->code != SILT_PROTOCOL)
            return -1;
        if (got > 0 && job.in.len == sizeof(job.request)) /* siltd waits for no other */
            serve(u, siltd, desk, &job);
        silt_parcel_close(&job.in);
    }
}

void silt_worker_answer_for(int siltd, struct silt_worker_desk *desk)
{
    struct silt_priv_answer a = {.seq = desk->seq, .slot = desk->slot};
    struct silt_parcel out = {.data = &a, .len = sizeof(a)};
    struct silt_error e;
    if (!desk->busy)
        return;
    desk->busy = 0;
    (void)silt_fail(&a.body.error, SILT_INTERRUPTED, "the worker of silt-priv died");
    if (siltd >= 0)
        (void)silt_fd_send(siltd, &out, &e);
}
