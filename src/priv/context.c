/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/context.h"
#include "engine/storage/layer.h"
#include "engine/storage/trust.h"
#include "priv/stop.h"
#include "priv/zygote_parent.h"
#include "wire/agent.h"

#include <fcntl.h>

/* Descriptors opened for one request. */
struct forking {
    struct silt_cgroup_birth groups;
    int handle;
    int init;
};

static void close_forking(struct forking *f)
{
    silt_close_fd(&f->init);
    silt_close_fd(&f->handle);
    silt_cgroup_birth_close(&f->groups);
}
#define auto_forking __attribute__((cleanup(close_forking))) struct forking

static int open_forking(struct silt_priv_helper *u, uint32_t slot, uint32_t k, struct forking *f,
                        struct silt_error *e)
{
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, slot, &volume, e) < 0
        || silt_priv_find_init(u, slot, volume, &f->init, e) < 0
        || silt_cgroup_context_join(&u->cgroups, slot, k, &f->handle, e) < 0)
        return -1;
    return u->cgroups.version == 1 ? silt_cgroup_birth_open(&u->cgroups, slot, &f->groups, e) : 0;
}

/* v1: the guest's groups without the freezer's, which belongs to the handle. */
static int list_descriptors(const struct silt_priv_job *job, const struct forking *f,
                            struct silt_zygote_ask *ask, int ret[SILT_FDS_MAX])
{
    int n = 0;
    ret[n++] = f->init;
    for (int i = 0; i < SILT_PRIV_CONTEXT_FDS; i++)
        ret[n++] = job->in.fds[i];
    if (f->groups.njoins == 0) {
        ask->into = 1;
        ret[n++] = f->handle;
        return n;
    }
    for (int i = 0; i < f->groups.njoins - 1; i++)
        ret[n++] = f->groups.joins[i];
    ret[n++] = f->handle;
    ask->joins = (uint32_t)f->groups.njoins;
    return n;
}

static int fork_inside(struct silt_priv_helper *u, struct silt_priv_job *job,
                       const uint8_t tree[SILT_DIGEST_SIZE], uint32_t k, struct silt_error *e)
{
    auto_forking f = {
        .groups = {.into = -1, .oom = -1, .peak = -1, .pids = -1}, .handle = -1, .init = -1};
    struct silt_zygote_parent_ask ask = {.type = SILT_ZYGOTE_PARENT_FORK,
                                         .slot = job->request.slot,
                                         .number = job->request.body.context.number,
                                         .handle = k};
    struct silt_zygote_parent_answer answer;
    int fds[SILT_FDS_MAX], pidfd = -1;
    if (open_forking(u, ask.slot, k, &f, e) < 0)
        return -1;
    memcpy(ask.digest, tree, sizeof(ask.digest));
    int nfds = list_descriptors(job, &f, &ask.zygote, fds);
    if (silt_zygote_parent_ask(u->zygote_parent, &ask, fds, nfds, &answer, &pidfd, e) < 0)
        return -1;
    job->answer.body.context.pid = answer.pid;
    job->out.fds[job->out.nfds++] = pidfd;
    return 0;
}

/* Finds the image's tree, if root trusts it. Of the layers in between only our own notes are read:
 * the forked child, which is inside by then and has no rights, checks what they change
 * (silt_kernel/loaded.py). */
static int find_trusted(struct silt_priv_helper *u, const uint8_t digest[SILT_DIGEST_SIZE],
                        uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e)
{
    struct silt_layers image;
    silt_auto_fd trusted = -1;
    if (silt_layers_open(&u->volumes, u->images, digest, &image, e) < 0)
        return -1;
    memcpy(ret, image.bottom, SILT_DIGEST_SIZE);
    silt_layers_close(&image);
    return silt_trust_open(u->images, ret, &trusted, e);
}

int silt_priv_run_context(struct silt_priv_helper *u, struct silt_priv_job *job,
                          struct silt_error *e)
{
    int handle[SILT_CGROUP_FDS_PER_HANDLE], nfds;
    uint32_t k, slot = job->request.slot;
    uint8_t tree[SILT_DIGEST_SIZE];
    if (u->zygote_parent < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "no Python is kept warm");
    if (find_trusted(u, job->request.body.context.digest, tree, e) < 0
        || silt_cgroup_context(&u->cgroups, slot, &k, handle, &nfds, e) < 0)
        return -1;
    int done = fork_inside(u, job, tree, k, e);
    for (int i = 0; i < nfds; i++) {
        if (done == 0)
            job->out.fds[job->out.nfds++] = handle[i];
        else
            silt_close_fd(&handle[i]);
    }
    if (done < 0)
        silt_cgroup_context_remove(&u->cgroups, slot, k);
    return done;
}

/* Only the dead zygote_parent knew the handle's number: all empty handles are removed. */
int silt_priv_run_reap(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    struct silt_zygote_parent_ask ask = {.type = SILT_ZYGOTE_PARENT_REAP,
                                         .slot = job->request.slot,
                                         .number = job->request.body.context.number};
    struct silt_zygote_parent_answer answer = {0};
    int pidfd = -1;
    if (silt_zygote_parent_ask(u->zygote_parent, &ask, NULL, 0, &answer, &pidfd, e) < 0)
        answer.known = 0;
    job->answer.body.context =
        (struct silt_priv_context_answer){.known = (int32_t)answer.known, .status = answer.status};
    if (answer.known)
        silt_cgroup_context_remove(&u->cgroups, ask.slot, answer.handle);
    for (uint32_t i = 0; !answer.known && i < SILT_CGROUP_CONTEXTS_MAX; i++)
        silt_cgroup_context_remove(&u->cgroups, ask.slot, SILT_HANDLES_MAX + i);
    return 0;
}
