/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/create.h"
#include "base/log.h"
#include "base/own.h"
#include "engine/storage/layer.h"
#include "engine/launch/launch.h"
#include "engine/storage/pool_room.h"
#include "engine/launch/rootfs.h"
#include "engine/launch/template.h"
#include "priv/stop.h"
#include "priv/janitor.h"

#include <errno.h>
#include <string.h>

enum { HANDLES_MAX = 16, CAPTIVES = 2 /* prepared in each worker */ };

static const uint64_t memory_least = 8ULL << 20, memory_most = 1ULL << 46;
/* A start writes a little to the volume: overlayfs its work directory. A sandbox with a full volume
 * must start, too. */
static const uint64_t headroom = 8ULL << 20;
static const uint64_t disk_least = 1ULL << 20, disk_most = 1ULL << 50;

int silt_priv_check_limits(const struct silt_priv_limits *l, struct silt_error *e)
{
    if (l->memory_bytes < memory_least || l->memory_bytes > memory_most)
        return silt_fail(e, SILT_INVALID, "memory limit of %llu bytes",
                         (unsigned long long)l->memory_bytes);
    if (l->disk_bytes < disk_least || l->disk_bytes > disk_most)
        return silt_fail(e, SILT_INVALID, "disk limit of %llu bytes",
                         (unsigned long long)l->disk_bytes);
    if (l->cpu_milli != 0 && (l->cpu_milli < 10 || l->cpu_milli > 1024 * 1000))
        return silt_fail(e, SILT_INVALID, "cpu limit of %u thousandths", l->cpu_milli);
    if (l->pids < 4 || l->pids > 1U << 22)
        return silt_fail(e, SILT_INVALID, "limit of %u processes", l->pids);
    return 0;
}

int silt_priv_check_hostname(const char name[SILT_HOSTNAME_SIZE], struct silt_error *e)
{
    size_t len = strnlen(name, SILT_HOSTNAME_SIZE);
    if (len == 0 || len == SILT_HOSTNAME_SIZE)
        return silt_fail(e, SILT_INVALID, "host name of %zu bytes", len);
    for (size_t i = 0; i < len; i++)
        if (!silt_is_any(name[i],
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"))
            return silt_fail(e, SILT_INVALID,
                             "host name with other characters than letters, digits, -");
    return 0;
}

int silt_priv_check_network(uint32_t mode, struct silt_error *e)
{
    if (mode >= SILT_NET_MODE_MAX)
        return silt_fail(e, SILT_PROTOCOL, "unknown network mode %u", mode);
    return 0;
}

static int check(const struct silt_priv_create *c, struct silt_error *e)
{
    uint32_t known =
        SILT_CREATE_FRESH | SILT_CREATE_EPHEMERAL | SILT_CREATE_HOST_USR | SILT_CREATE_READY;
    if ((c->flags & ~known) != 0)
        return silt_fail(e, SILT_PROTOCOL, "unknown flags 0x%x", c->flags);
    if (c->handles > HANDLES_MAX)
        return silt_fail(e, SILT_INVALID, "%u handles at birth, at most %d", c->handles,
                         HANDLES_MAX);
    if (silt_priv_check_limits(&c->limits, e) < 0 || silt_priv_check_network(c->network, e) < 0)
        return -1;
    return silt_priv_check_hostname(c->hostname, e);
}

/* One create and the descriptors it opened. */
struct making {
    struct silt_priv_helper *unit;
    uint32_t slot;
    const struct silt_priv_create *wanted;
    int channel; /* borrowed */
    int volume, root, usr, template;
    struct silt_layers image;
    struct silt_cgroup_birth birth;
    int handle_fds[HANDLES_MAX * SILT_CGROUP_FDS_PER_HANDLE];
    int nhandle_fds;
    struct silt_net net;
};

static void close_making(struct making *m)
{
    silt_close_fd(&m->volume);
    silt_layers_close(&m->image);
    silt_close_fd(&m->root);
    silt_close_fd(&m->usr);
    silt_close_fd(&m->template);
    silt_cgroup_birth_close(&m->birth);
    for (int i = 0; i < m->nhandle_fds; i++)
        silt_close_fd(&m->handle_fds[i]);
    silt_net_close(&m->net);
}

static bool wants(const struct making *m, uint32_t flag)
{
    return (m->wanted->flags & flag) != 0;
}

/* Existing files may belong to processes that nobody knows of: an earlier silt-priv was killed
 * before it could answer. */
static int end_leftovers(const struct making *m, struct silt_error *e)
{
    struct silt_error ignored;
    silt_auto_fd volume = -1;
    if (silt_volume_open(&m->unit->volumes, m->slot, &volume, &ignored) < 0)
        return 0;
    return silt_priv_end_processes(m->unit, m->slot, volume, e);
}

static int open_volume(struct making *m, struct silt_error *e)
{
    const struct silt_volumes *v = &m->unit->volumes;
    if (end_leftovers(m, e) < 0)
        return -1;
    if (wants(m, SILT_CREATE_FRESH)) {
        if (silt_volume_make(v, m->slot, silt_priv_helper_ids(m->unit, m->slot), &m->volume, e) < 0)
            return -1;
        return wants(m, SILT_CREATE_READY) ? silt_volume_note_ready(m->volume, e) : 0;
    }
    if (silt_volume_open(v, m->slot, &m->volume, e) < 0)
        return -1;
    silt_janitor_await_release(m->unit->janitor, m->slot); /* root of the previous start */
    return 0;
}

static int make_groups(struct making *m, struct silt_error *e)
{
    const struct silt_cgroups *c = &m->unit->cgroups;
    if (silt_cgroup_make(c, m->slot, &m->wanted->limits, e) < 0)
        return -1;
    if (silt_cgroup_birth_open(c, m->slot, &m->birth, e) < 0)
        return -1;
    return silt_cgroup_handles(c, m->slot, m->wanted->handles, m->handle_fds, &m->nhandle_fds, e);
}

static int mount_root(struct making *m, struct silt_error *e)
{
    uint32_t ids = silt_priv_helper_ids(m->unit, m->slot);
    if (silt_layers_open(&m->unit->volumes, m->unit->images, m->wanted->digest, &m->image, e) < 0)
        return -1;
    struct silt_rootfs rootfs = {.image = &m->image,
                                 .volume = m->volume,
                                 .ids = ids,
                                 .ids_images = m->unit->ids_images,
                                 .ephemeral = wants(m, SILT_CREATE_EPHEMERAL)};
    if (silt_rootfs_mount(&rootfs, &m->root, m->unit->later, &m->unit->nlater, e) < 0)
        return -1;
    if (wants(m, SILT_CREATE_HOST_USR) && silt_rootfs_usr(ids, &m->usr, e) < 0)
        return -1;
    return silt_template_copy(&m->template, e);
}

/* The first one of an instance waits for nft; afterwards some are prepared. */
static int take_captive(struct making *m, struct silt_error *e)
{
    struct silt_priv_helper *u = m->unit;
    u->captives_wanted = CAPTIVES;
    if (u->ncaptives == 0)
        return silt_net_make(&u->gate, SILT_NET_CAPTIVE, &m->net, e);
    m->net = u->captives[--u->ncaptives];
    return 0;
}

static int take_net(struct making *m, struct silt_error *e)
{
    struct silt_priv_helper *u = m->unit;
    enum silt_net_mode mode = m->wanted->network;
    if (mode == SILT_NET_CAPTIVE)
        return take_captive(m, e);
    if (u->nnets == 0)
        return silt_net_make(&u->gate, mode == SILT_NET_DEFAULT ? SILT_NET_PUBLIC : mode, &m->net,
                             e);
    m->net = u->nets[--u->nnets];
    if (mode == SILT_NET_DEFAULT || mode == SILT_NET_PUBLIC) /* like those in the pool */
        return 0;
    return silt_net_set_mode(&u->gate, &m->net, mode, e);
}

static bool refill(struct silt_priv_helper *u, enum silt_net_mode mode, struct silt_net *pool,
                   uint32_t *count)
{
    struct silt_error e;
    if (silt_net_make(&u->gate, mode, &pool[*count], &e) == 0) {
        (*count)++;
        return true;
    }
    silt_log(SILT_LOG_WARN, "priv.no_net", "error=\"%s\"", e.text);
    return false;
}

bool silt_priv_refill(struct silt_priv_helper *u)
{
    if (u->nnets < u->nets_wanted)
        return refill(u, SILT_NET_PUBLIC, u->nets, &u->nnets);
    if (u->ncaptives < u->captives_wanted)
        return refill(u, SILT_NET_CAPTIVE, u->captives, &u->ncaptives);
    return false;
}

static int launch(const struct making *m, int *ret_pidfd, struct silt_error *e)
{
    const struct silt_priv_helper *u = m->unit;
    struct silt_launch l = {
        .slot = m->slot,
        .ids = silt_priv_helper_ids(u, m->slot),
        .root = m->root,
        .usr = m->usr,
        .template = m->template,
        .pids = &u->pids,
        .channel = m->channel,
        .cgroups = &u->cgroups,
        .birth = &m->birth,
        .handle_fds = m->handle_fds,
        .nhandle_fds = m->nhandle_fds,
        .handles = m->wanted->handles,
        .net = &m->net,
        .home_net = u->home_net,
        .resolver = m->net.captive      ? SILT_TEMPLATE_PUBLIC_RESOLV
                    : m->net.index != 0 ? SILT_TEMPLATE_RESOLV
                                        : NULL,
        .seccomp = &u->seccomp,
        .init = u->init,
        .shm_bytes = silt_priv_shm_bytes(&m->wanted->limits),
        .hostname = m->wanted->hostname,
    };
    return silt_launch(&l, ret_pidfd, e);
}

static int create(struct making *m, struct silt_priv_made *ret, struct silt_error *e)
{
    const struct silt_volumes *v = &m->unit->volumes;
    uint64_t disk = m->wanted->limits.disk_bytes;
    silt_auto_fd pidfd = -1;
    if (open_volume(m, e) < 0)
        return -1;
    if (silt_volume_limit(v, m->volume, disk + headroom, e) < 0)
        return -1;
    if (make_groups(m, e) < 0)
        return -1;
    if (mount_root(m, e) < 0)
        return -1;
    if (take_net(m, e) < 0)
        return -1;
    if (launch(m, &pidfd, e) < 0)
        return -1;
    if (silt_volume_limit(v, m->volume, disk, e) < 0)
        return -1;
    silt_janitor_tell(m->unit->janitor, SILT_JANITOR_KEEP, m->slot, m->root);
    ret->link = silt_net_link(&m->net);
    ret->pidfd = silt_take_fd(&pidfd);
    return 0;
}

static void undo(struct silt_priv_helper *u, uint32_t slot, bool fresh)
{
    struct silt_error e;
    int done = fresh ? silt_priv_destroy(u, slot, &e) : silt_priv_stop(u, slot, &e);
    if (done < 0)
        silt_log(SILT_LOG_WARN, "priv.undo", "slot=%u error=\"%s\"", slot, e.text);
}

static int attempt(struct silt_priv_helper *u, uint32_t slot, const struct silt_priv_create *c,
                   int channel, struct silt_priv_made *ret, struct silt_error *e)
{
    struct making m = {.unit = u,
                       .slot = slot,
                       .wanted = c,
                       .channel = channel,
                       .volume = -1,
                       .image = {.tree = -1},
                       .root = -1,
                       .usr = -1,
                       .template = -1,
                       .birth = {.into = -1, .oom = -1, .peak = -1, .pids = -1},
                       .net = {.ns = -1, .sysfs = -1}};
    silt_priv_close_later(u); /* from a previous attempt */
    int done = create(&m, ret, e);
    close_making(&m);
    if (done < 0)
        undo(u, slot, (c->flags & SILT_CREATE_FRESH) != 0);
    return done;
}

/* Outside the quota group of all sandboxes, only its own limit plus headroom applies; no process
 * runs in it yet. If the worker dies here, the volume stays outside: see priv/worker.c. */
static int attempt_alone(struct silt_priv_helper *u, uint32_t slot,
                         const struct silt_priv_create *c, int channel, struct silt_priv_made *ret,
                         struct silt_error *e)
{
    const struct silt_volumes *v = &u->volumes;
    silt_auto_fd volume = -1;
    if (silt_volume_open(v, slot, &volume, e) < 0)
        return -1;
    bool left = silt_volume_leave(v, volume);
    int done = attempt(u, slot, c, channel, ret, e);
    if (silt_volume_join(v, volume) || left)
        silt_pool_room_rescan(v);
    return done;
}

/* The quota, or btrfs itself, which frees what was deleted only with a commit. */
static bool can_retry(const struct silt_priv_helper *u, const struct silt_error *e)
{
    return e->sys == EDQUOT || (e->sys == ENOSPC && silt_volumes_hurry(&u->volumes));
}

/* All sandboxes together may have used up their space, and a client must still be able to start one
 * and delete files in it. What a start writes is replaced by the next start, so usage does not
 * grow; new sandboxes would make it grow. */
int silt_priv_create(struct silt_priv_helper *u, uint32_t slot, const struct silt_priv_create *c,
                     int channel, struct silt_priv_made *ret, struct silt_error *e)
{
    if (check(c, e) < 0)
        return -1;
    int done = attempt(u, slot, c, channel, ret, e);
    if (done < 0 && (c->flags & SILT_CREATE_FRESH) == 0 && can_retry(u, e))
        done = attempt_alone(u, slot, c, channel, ret, e);
    return done;
}
