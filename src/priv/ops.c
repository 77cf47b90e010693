/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/ops.h"
#include "base/log.h"
#include "base/test_switch.h"
#include "engine/launch/fetch_jail.h"
#include "engine/network/captive.h"
#include "engine/storage/copy.h"
#include "engine/storage/image.h"
#include "engine/storage/layer.h"
#include "engine/core/mnt.h"
#include "engine/network/netns_dial.h"
#include "engine/launch/rootfs.h"
#include "priv/context.h"
#include "priv/create.h"
#include "priv/stop.h"
#include "priv/janitor.h"
#include "priv/recovery.h"
#include "wire/agent.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static void give(struct silt_priv_job *job, int fd)
{
    job->out.fds[job->out.nfds++] = fd;
}

static int run_create(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    struct silt_priv_made made;
    if (silt_priv_put_record(u, job, 1, e) < 0)
        return -1;
    if (silt_priv_create(u, job->request.slot, &job->request.body.create, job->in.fds[0], &made, e)
        < 0)
        return -1;
    give(job, made.pidfd);
    job->answer.link = made.link;
    return 0;
}

static int set_hostname(struct silt_priv_helper *u, int pidfd, const char *name,
                        struct silt_error *e)
{
    if (silt_without("uts"))
        return 0; /* it would be the machine's */
    if (setns(pidfd, CLONE_NEWUTS) < 0)
        return silt_fail_errno(e, "enter the sandbox's host name");
    int done = sethostname(name, strlen(name));
    int saved = errno;
    if (setns(u->home_uts, CLONE_NEWUTS) < 0)
        abort(); /* never continue in a foreign namespace */
    errno = saved;
    if (done < 0)
        return silt_fail_errno(e, "set the sandbox's host name");
    return 0;
}

/* A ready sandbox was created with other limits; its /dev/shm, which is memory, could be larger
 * than its new memory limit. */
static int resize_shm(struct silt_priv_helper *u, int pidfd, const struct silt_priv_limits *l,
                      struct silt_error *e)
{
    if (setns(pidfd, CLONE_NEWNS) < 0)
        return silt_fail_errno(e, "enter the sandbox's mounts");
    int done = silt_mnt_resize("/dev/shm", silt_priv_shm_bytes(l), e);
    if (setns(u->home_mnt, CLONE_NEWNS) < 0)
        abort(); /* never continue in a foreign namespace */
    return done;
}

static int set_limits(struct silt_priv_helper *u, uint32_t slot, int volume, int pidfd,
                      const struct silt_priv_limits *l, struct silt_error *e)
{
    return silt_cgroup_limit(&u->cgroups, slot, l, e) < 0
                   || silt_volume_limit(&u->volumes, volume, l->disk_bytes, e) < 0
                   || resize_shm(u, pidfd, l, e) < 0
               ? -1
               : 0;
}

/* Captive is a property of the namespace, fixed when it is created. */
static int check_not_captive(uint32_t mode, struct silt_error *e)
{
    return mode == SILT_NET_CAPTIVE
               ? silt_fail(e, SILT_PROTOCOL, "a sandbox is not made captive later")
               : 0;
}

static int run_claim(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_claim *c = &job->request.body.claim;
    uint32_t slot = job->request.slot;
    silt_auto_fd volume = -1, pidfd = -1;
    if ((!c->keep_limits && silt_priv_check_limits(&c->limits, e) < 0)
        || silt_priv_check_network(c->network, e) < 0 || check_not_captive(c->network, e) < 0
        || silt_priv_check_hostname(c->hostname, e) < 0)
        return -1;
    if (silt_volume_open(&u->volumes, slot, &volume, e) < 0)
        return -1;
    if (silt_priv_find_init(u, slot, volume, &pidfd, e) < 0
        || silt_priv_put_record(u, job, 0, e) < 0)
        return -1;
    if (!c->keep_limits && set_limits(u, slot, volume, pidfd, &c->limits, e) < 0)
        return -1;
    if (c->network != SILT_NET_DEFAULT && u->gate.ns >= 0
        && silt_net_change_mode(&u->gate, pidfd, c->network, &job->answer.link, e) < 0)
        return -1;
    if (set_hostname(u, pidfd, c->hostname, e) < 0)
        return -1;
    u->claimed = silt_take_fd(&volume);
    return 0;
}

static int open_running(struct silt_priv_helper *u, uint32_t slot, int *ret_pidfd,
                        struct silt_error *e)
{
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, slot, &volume, e) < 0)
        return -1;
    return silt_priv_find_init(u, slot, volume, ret_pidfd, e);
}

static int run_network(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    uint32_t mode = job->request.body.network;
    silt_auto_fd pidfd = -1;
    if (mode == SILT_NET_DEFAULT || mode == SILT_NET_CAPTIVE
        || silt_priv_check_network(mode, e) < 0)
        return silt_fail(e, SILT_PROTOCOL, "network mode %u", mode);
    if (open_running(u, job->request.slot, &pidfd, e) < 0)
        return -1;
    return silt_net_change_mode(&u->gate, pidfd, mode, &job->answer.link, e);
}

static int run_netstat(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    silt_auto_fd pidfd = -1;
    if (open_running(u, job->request.slot, &pidfd, e) < 0)
        return -1;
    return silt_net_counters(&u->gate, pidfd, &job->answer.body.netstat, &job->answer.link, e);
}

static int run_dial(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    uint32_t port = job->request.body.port;
    silt_auto_fd pidfd = -1;
    int fd;
    if (port == 0 || port > UINT16_MAX)
        return silt_fail(e, SILT_PROTOCOL, "port %u", port);
    if (open_running(u, job->request.slot, &pidfd, e) < 0
        || silt_netns_dial(u->home_net, pidfd, (uint16_t)port, &fd, e) < 0)
        return -1;
    give(job, fd);
    return 0;
}

static int run_capture(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    silt_auto_fd pidfd = -1;
    if (open_running(u, job->request.slot, &pidfd, e) < 0)
        return -1;
    return silt_captive_open(u->home_net, pidfd, u->gate.plan.ipv6, job->out.fds, &job->out.nfds,
                             e);
}

static int run_stop(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    return silt_priv_stop(u, job->request.slot, e);
}

static int run_freeze(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    return silt_cgroup_freeze(&u->cgroups, job->request.slot, e);
}

static int run_thaw(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    return silt_cgroup_thaw(&u->cgroups, job->request.slot, e);
}

static int run_limit(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_limits *l = &job->request.body.limits;
    silt_auto_fd volume = -1, pidfd = -1;
    if (silt_priv_check_limits(l, e) < 0
        || silt_volume_open(&u->volumes, job->request.slot, &volume, e) < 0
        || silt_priv_find_init(u, job->request.slot, volume, &pidfd, e) < 0)
        return -1;
    return set_limits(u, job->request.slot, volume, pidfd, l, e);
}

static int run_destroy(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    return silt_priv_destroy(u, job->request.slot, e);
}

/* A sleeping sandbox has files and no groups; one that is gone has neither: zeros are correct. */
static int run_stat(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    struct silt_priv_stat *stat = &job->answer.body.stat;
    uint32_t slot = job->request.slot;
    struct silt_error ignored;
    silt_auto_fd volume = -1, pidfd = -1;
    *stat = (struct silt_priv_stat){0};
    if (silt_volume_open(&u->volumes, slot, &volume, &ignored) < 0)
        return 0;
    if (silt_volume_usage(&u->volumes, volume, &stat->disk_bytes, &ignored) < 0)
        silt_log(SILT_LOG_DEBUG, "priv.usage", "slot=%u error=\"%s\"", slot, ignored.text);
    if (silt_cgroup_stat(&u->cgroups, slot, stat, e) < 0)
        return e->code == SILT_NOT_FOUND ? 0 : -1;
    stat->running = silt_priv_find_init(u, slot, volume, &pidfd, &ignored) == 0;
    return 0;
}

static int run_handles(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    uint32_t count = job->request.body.count;
    uint32_t most = SILT_FDS_MAX / SILT_CGROUP_FDS_PER_HANDLE;
    if (count == 0 || count > most)
        return silt_fail(e, SILT_INVALID, "%u handles at once, 1 to %u", count, most);
    return silt_cgroup_handles(&u->cgroups, job->request.slot, count, job->out.fds, &job->out.nfds,
                               e);
}

static int run_spool(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    silt_auto_fd volume = -1;
    int fd;
    if (silt_volume_open(&u->volumes, job->request.slot, &volume, e) < 0)
        return -1;
    if (silt_volume_spool(volume, &fd, e) < 0)
        return -1;
    give(job, fd);
    return 0;
}

static int run_log(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_log *l = &job->request.body.log;
    silt_auto_fd volume = -1;
    int fd;
    if (silt_volume_open(&u->volumes, job->request.slot, &volume, e) < 0)
        return -1;
    if (silt_volume_log(volume, l->number, l->fresh != 0, &fd, e) < 0)
        return -1;
    give(job, fd);
    return 0;
}

static int run_unlog(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, job->request.slot, &volume, e) < 0)
        return e->code == SILT_NOT_FOUND ? 0 : -1;
    return silt_volume_unlog(volume, job->request.body.log.number, e);
}

/* Every process that writes into a staging directory is in its control group. siltd's word that it
 * is done is not trusted: nothing is published, and no directory is reused, while that group has a
 * process. */
static int end_staging(const struct silt_priv_helper *u, uint32_t staging, struct silt_error *e)
{
    return silt_without("staging_group") ? 0 : silt_cgroup_fetch_end(&u->cgroups, staging, e);
}

static int start_import(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    uint32_t staging = job->request.body.import.staging;
    silt_auto_fd directory = -1;
    int pidfd;
    if (end_staging(u, staging, e) < 0
        || silt_image_stage(u->images, silt_priv_staging_directory(u, staging), u->ids_images,
                            &directory, e)
               < 0)
        return -1;
    struct silt_fetch_jail cage = {.ids = u->ids_images,
                                   .directory = directory,
                                   .input = job->in.fds[0],
                                   .result = job->in.fds[1],
                                   .program = u->fetch,
                                   .cgroups = &u->cgroups,
                                   .group = staging,
                                   .seccomp = &u->seccomp};
    if (silt_fetch_jail_start(&cage, &pidfd, e) < 0)
        return -1;
    give(job, pidfd);
    return 0;
}

static int start_commit(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_import *i = &job->request.body.import;
    if (end_staging(u, i->staging, e) < 0)
        return -1;
    return silt_image_commit(u->images, silt_priv_staging_directory(u, i->staging), i->digest, e);
}

static int start_discard(struct silt_priv_helper *u, struct silt_priv_job *job,
                         struct silt_error *e)
{
    uint32_t staging = job->request.body.import.staging;
    if (end_staging(u, staging, e) < 0)
        return -1;
    return silt_image_discard(u->images, silt_priv_staging_directory(u, staging), e);
}

/* One at a time per directory: between checking the group and the rename no other process may start
 * there. */
static int with_staging(struct silt_priv_helper *u, struct silt_priv_job *job,
                        int (*run)(struct silt_priv_helper *u, struct silt_priv_job *job,
                                   struct silt_error *e),
                        struct silt_error *e)
{
    uint32_t staging = job->request.body.import.staging;
    if (staging >= SILT_STAGINGS_MAX)
        return silt_fail(e, SILT_INVALID, "staging directory %u, at most %d", staging,
                         SILT_STAGINGS_MAX - 1);
    if (silt_priv_lock(u, silt_priv_staging_lock(staging), e) < 0)
        return -1;
    int done = run(u, job, e);
    silt_priv_unlock(u, silt_priv_staging_lock(staging));
    return done;
}

static int run_import(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    if (u->fetch < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "program silt-fetch is not installed");
    return with_staging(u, job, start_import, e);
}

static int run_export(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    struct silt_layers image;
    silt_auto_fd view = -1;
    int pidfd;
    if (u->fetch < 0)
        return silt_fail(e, SILT_UNAVAILABLE, "program silt-fetch is not installed");
    if (silt_layers_open(&u->volumes, u->images, job->request.body.import.digest, &image, e) < 0)
        return -1;
    int got = silt_rootfs_view(&image, u->ids_images, &view, e);
    silt_layers_close(&image);
    if (got < 0)
        return -1;
    struct silt_fetch_jail cage = {.ids = u->ids_images,
                                   .directory = view,
                                   .is_mount = true,
                                   .input = job->in.fds[0],
                                   .output = &job->in.fds[1],
                                   .result = job->in.fds[2],
                                   .program = u->fetch,
                                   .cgroups = &u->cgroups,
                                   .group = SILT_CGROUP_EXPORTS,
                                   .seccomp = &u->seccomp};
    if (silt_fetch_jail_start(&cage, &pidfd, e) < 0)
        return -1;
    give(job, pidfd);
    return 0;
}

static int run_commit(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    if (with_staging(u, job, start_commit, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_SWEEP, 0, -1);
    return 0;
}

static int run_discard(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    if (with_staging(u, job, start_discard, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_SWEEP, 0, -1);
    return 0;
}

static int run_forget(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    if (silt_image_forget(u->images, job->request.body.import.digest, e) < 0
        || silt_layer_forget(&u->volumes, job->request.body.import.digest, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_SWEEP, 0, -1);
    return 0;
}

static int seal(struct silt_priv_helper *u, const struct silt_layer_seal *s,
                struct silt_priv_sealed *answer, struct silt_error *e)
{
    if (silt_layer_seal(&u->volumes, u->images, s, &answer->bytes, e) < 0)
        return -1;
    answer->crowded = silt_volumes_are_crowded(&u->volumes);
    return 0;
}

static int run_seal(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_seal *q = &job->request.body.seal;
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, job->request.slot, &volume, e) < 0)
        return -1;
    struct silt_layer_seal how = {.volume = volume,
                                  .ids = silt_priv_helper_ids(u, job->request.slot),
                                  .digest = q->digest,
                                  .parent = q->parent,
                                  .soon = q->soon != 0};
    if (q->compare != 0 && silt_layer_is_current(&u->volumes, q->since, volume)) {
        job->answer.body.sealed = (struct silt_priv_sealed){.unchanged = 1};
        return 0;
    }
    if (job->in.nfds == 1
        && silt_fd_map_sealed(job->in.fds[0], SILT_SEAL_LEFT_OUT_MAX, &how.left_out, e) < 0)
        return -1;
    int done = seal(u, &how, &job->answer.body.sealed, e);
    if (job->in.nfds == 1)
        silt_fd_unmap(how.left_out);
    return done;
}

static int make_volume(struct silt_priv_helper *u, uint32_t slot, const struct silt_priv_make *q,
                       struct silt_error *e)
{
    uint32_t ids = silt_priv_helper_ids(u, slot);
    struct silt_copy copy = {
        .slot = slot, .ids = ids, .digest = q->digest, .disk_bytes = q->limits.disk_bytes};
    silt_auto_fd volume = -1;
    if (q->copy != 0)
        return silt_volume_discard(&u->volumes, slot, e) < 0
                       || silt_copy_make(&u->volumes, &copy, e) < 0
                   ? -1
                   : 0;
    return silt_volume_make(&u->volumes, slot, ids, &volume, e) < 0
                   || silt_volume_limit(&u->volumes, volume, q->limits.disk_bytes, e) < 0
               ? -1
               : 0;
}

/* A volume that exists belongs to a sandbox that siltd has forgotten. */
static int run_make(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_make *q = &job->request.body.make;
    uint32_t slot = job->request.slot;
    struct silt_error ignored;
    if (silt_priv_check_limits(&q->limits, e) < 0 || silt_priv_stop(u, slot, e) < 0
        || silt_priv_put_record(u, job, 0, e) < 0)
        return -1;
    if (make_volume(u, slot, q, e) == 0)
        return 0;
    (void)silt_priv_destroy(u, slot, &ignored);
    return -1;
}

static int run_rollback(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    const struct silt_priv_make *q = &job->request.body.make;
    uint32_t slot = job->request.slot;
    struct silt_copy copy = {.slot = slot,
                             .ids = silt_priv_helper_ids(u, slot),
                             .digest = q->digest,
                             .disk_bytes = q->limits.disk_bytes};
    if (silt_priv_check_limits(&q->limits, e) < 0 || silt_priv_stop(u, slot, e) < 0
        || silt_copy_replace(&u->volumes, &copy, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_SWEEP, slot, -1);
    return 0;
}

/* Operations that start or end a sandbox lock its slot. */
static const struct op {
    const char *name;
    int (*run)(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e);
    bool alone;
    int fds;                                        /* number of descriptors */
    enum silt_fd_kind kinds[SILT_PRIV_CONTEXT_FDS]; /* the maximum of all operations */
    int more; /* a sealed memfd may follow: its reader checks it */
} ops[SILT_PRIV_OP_MAX] = {
    [SILT_PRIV_CREATE] = {"create", run_create, true, 1, {SILT_FD_PACKETS}, 1},
    [SILT_PRIV_MAKE] = {"make", run_make, true, .more = 1},
    [SILT_PRIV_ROLLBACK] = {"roll back", run_rollback, true},
    [SILT_PRIV_CLAIM] = {"claim", run_claim, true, .more = 1},
    [SILT_PRIV_STOP] = {"stop", run_stop, true},
    [SILT_PRIV_FREEZE] = {"freeze", run_freeze, true},
    [SILT_PRIV_THAW] = {"thaw", run_thaw, true},
    [SILT_PRIV_LIMIT] = {"limits of", run_limit, true},
    [SILT_PRIV_DESTROY] = {"destroy", run_destroy, true},
    [SILT_PRIV_STAT] = {"stat", run_stat},
    [SILT_PRIV_HANDLES] = {"handles", run_handles},
    [SILT_PRIV_SPOOL] = {"spool", run_spool},
    [SILT_PRIV_LOG] = {"log", run_log},
    [SILT_PRIV_UNLOG] = {"unlog", run_unlog},
    [SILT_PRIV_IMPORT] = {"import", run_import, false, 2, {SILT_FD_READ, SILT_FD_WRITE}},
    [SILT_PRIV_EXPORT] =
        {"export", run_export, false, 3, {SILT_FD_READ, SILT_FD_WRITE, SILT_FD_WRITE}},
    [SILT_PRIV_COMMIT] = {"commit", run_commit},
    [SILT_PRIV_DISCARD] = {"discard", run_discard},
    [SILT_PRIV_FORGET] = {"forget", run_forget},
    [SILT_PRIV_NETWORK] = {"network of", run_network},
    [SILT_PRIV_NETSTAT] = {"counters of", run_netstat},
    [SILT_PRIV_CONTEXT] = {"warm context of",
                           silt_priv_run_context,
                           false,
                           SILT_PRIV_CONTEXT_FDS,
                           {SILT_FD_READ, SILT_FD_WRITE, SILT_FD_WRITE, SILT_FD_WRITE}},
    [SILT_PRIV_REAP] = {"ended context of", silt_priv_run_reap},
    [SILT_PRIV_SEAL] = {"seal", run_seal, .more = 1},
    [SILT_PRIV_DIAL] = {"dial into", run_dial},
    [SILT_PRIV_CAPTURE] = {"capture", run_capture},
    [SILT_PRIV_RECORD] = {"recovery record of", silt_priv_run_record, true, .more = 1},
    [SILT_PRIV_RECORDS] = {"recovery records of", silt_priv_run_records},
    [SILT_PRIV_READ_RECORD] = {"recovery record of", silt_priv_run_read_record},
};

static int check_descriptors(const struct op *op, const struct silt_parcel *in,
                             struct silt_error *e)
{
    if (in->nfds < op->fds || in->nfds > op->fds + op->more)
        return silt_fail(e, SILT_PROTOCOL, "%s with %d descriptors instead of %d", op->name,
                         in->nfds, op->fds);
    for (int i = 0; i < op->fds; i++)
        if (silt_fd_check(in->fds[i], op->kinds[i], e) < 0)
            return silt_because(e, "descriptor %d of %s", i, op->name);
    return 0;
}

static int run_alone(const struct op *op, struct silt_priv_helper *u, struct silt_priv_job *job,
                     struct silt_error *e)
{
    uint32_t lock = silt_priv_slot_lock(job->request.slot);
    if (silt_priv_lock(u, lock, e) < 0)
        return -1;
    int done = op->run(u, job, e);
    silt_priv_unlock(u, lock);
    return done;
}

static int dispatch(struct silt_priv_helper *u, struct silt_priv_job *job, struct silt_error *e)
{
    uint32_t op = job->request.op;
    if (op >= SILT_PRIV_OP_MAX || ops[op].run == NULL)
        return silt_fail(e, SILT_PROTOCOL, "unknown operation %u", op);
    if (job->request.slot >= u->slots)
        return silt_fail(e, SILT_PROTOCOL, "slot %u, at most %u", job->request.slot, u->slots - 1);
    if (check_descriptors(&ops[op], &job->in, e) < 0)
        return -1;
    if ((ops[op].alone ? run_alone(&ops[op], u, job, e) : ops[op].run(u, job, e)) < 0)
        return silt_because(e, "%s sandbox %u", ops[op].name, job->request.slot);
    return 0;
}

void silt_priv_ops_run(struct silt_priv_helper *u, struct silt_priv_job *job)
{
    struct silt_error e = {0};
    job->answer = (struct silt_priv_answer){.seq = job->request.seq, .slot = job->request.slot};
    job->out = (struct silt_parcel){.data = &job->answer, .len = sizeof(job->answer)};
    if (dispatch(u, job, &e) == 0) {
        job->answer.ok = 1;
        return;
    }
    silt_parcel_close(&job->out);
    job->answer.body.error = e;
    uint32_t op = job->request.op;
    bool usual =
        (e.code == SILT_UNAVAILABLE
         && (op == SILT_PRIV_CONTEXT || op == SILT_PRIV_DIAL)) /* it starts cold; no listener yet */
        || (e.code == SILT_CONFLICT
            && op == SILT_PRIV_CAPTURE); /* the guest uses the port: siltd reports that once */
    silt_log(usual ? SILT_LOG_DEBUG : SILT_LOG_WARN, "priv.failed",
             "op=%u slot=%u code=%s error=\"%s\"", op, job->request.slot, silt_code_name(e.code),
             e.text);
}

void silt_priv_ops_undo(struct silt_priv_helper *u, const struct silt_priv_job *job)
{
    struct silt_error e;
    if (job->request.op != SILT_PRIV_CREATE || !job->answer.ok)
        return;
    if (silt_priv_stop(u, job->request.slot, &e) < 0)
        silt_log(SILT_LOG_WARN, "priv.undo", "slot=%u error=\"%s\"", job->request.slot, e.text);
}
