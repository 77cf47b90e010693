/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/create.h"
#include "base/log.h"
#include "base/own.h"
#include "engine/image.h"
#include "engine/launch.h"
#include "engine/rootfs.h"
#include "priv/end.h"
#include "priv/janitor.h"

#include <string.h>

enum { HANDLES_MAX = 16 };

static const uint64_t memory_least = 8ULL << 20, memory_most = 1ULL << 46;
static const uint64_t disk_least = 1ULL << 20, disk_most = 1ULL << 50;

int silt_priv_check_limits(const struct silt_priv_limits *l, struct silt_error *e)
{
    if (l->memory_bytes < memory_least || l->memory_bytes > memory_most)
        return silt_fail(e, SILT_INVALID, "memory limit of %llu bytes",
                         (unsigned long long)l->memory_bytes);
    if (l->disk_bytes < disk_least || l->disk_bytes > disk_most)
        return silt_fail(e, SILT_INVALID, "disk limit of %llu bytes",
                         (unsigned long long)l->disk_bytes);
    if (l->cpu_milli < 10 || l->cpu_milli > 1024 * 1000)
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
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", name[i])
            == NULL)
            return silt_fail(e, SILT_INVALID,
                             "host name with other characters than letters, digits, -");
    return 0;
}

static int check(const struct silt_priv_create *c, struct silt_error *e)
{
    uint32_t known = SILT_CREATE_FRESH | SILT_CREATE_EPHEMERAL | SILT_CREATE_HOST_USR;
    if ((c->flags & ~known) != 0)
        return silt_fail(e, SILT_PROTOCOL, "unknown flags 0x%x", c->flags);
    if (c->handles > HANDLES_MAX)
        return silt_fail(e, SILT_INVALID, "%u handles at birth, at most %d", c->handles,
                         HANDLES_MAX);
    if (silt_priv_check_limits(&c->limits, e) < 0)
        return -1;
    return silt_priv_check_hostname(c->hostname, e);
}

/* What one create has opened on its way. */
struct making {
    int volume, image, root, usr;
    struct silt_cgroup_birth birth;
    int handle_fds[HANDLES_MAX * SILT_CGROUP_FDS_PER_HANDLE];
    int nhandle_fds;
    struct silt_net net;
};

static void close_making(struct making *m)
{
    silt_close_fd(&m->volume);
    silt_close_fd(&m->image);
    silt_close_fd(&m->root);
    silt_close_fd(&m->usr);
    silt_cgroup_birth_close(&m->birth);
    for (int i = 0; i < m->nhandle_fds; i++)
        silt_close_fd(&m->handle_fds[i]);
    silt_net_close(&m->net);
}

/* Files that are already there may belong to processes that nobody knows of any more: an earlier
 * silt-priv was killed before it could tell. */
static int end_leftovers(const struct silt_priv_unit *u, uint32_t slot, struct silt_error *e)
{
    struct silt_error ignored;
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, slot, &volume, &ignored) < 0)
        return 0;
    return silt_priv_end_processes(u, slot, volume, e);
}

static int open_volume(const struct silt_priv_unit *u, uint32_t slot,
                       const struct silt_priv_create *c, struct making *m, struct silt_error *e)
{
    bool fresh = (c->flags & SILT_CREATE_FRESH) != 0;
    if (end_leftovers(u, slot, e) < 0)
        return -1;
    if (fresh
        && silt_volume_make(&u->volumes, slot, silt_priv_unit_ids(u, slot), &m->volume, e) < 0)
        return -1;
    if (!fresh) {
        if (silt_volume_open(&u->volumes, slot, &m->volume, e) < 0)
            return -1;
        silt_janitor_await_release(u->janitor, slot); /* of the incarnation before */
    }
    return silt_volume_limit(&u->volumes, m->volume, c->limits.disk_bytes, e);
}

static int make_groups(const struct silt_priv_unit *u, uint32_t slot,
                       const struct silt_priv_create *c, struct making *m, struct silt_error *e)
{
    if (silt_cgroup_make(&u->cgroups, slot, &c->limits, e) < 0)
        return -1;
    if (silt_cgroup_birth_open(&u->cgroups, slot, &m->birth, e) < 0)
        return -1;
    return silt_cgroup_handles(&u->cgroups, slot, c->handles, m->handle_fds, &m->nhandle_fds, e);
}

static int mount_root(struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                      struct making *m, struct silt_error *e)
{
    uint32_t ids = silt_priv_unit_ids(u, slot);
    if (silt_image_open(u->images, c->digest, &m->image, e) < 0)
        return -1;
    struct silt_rootfs rootfs = {.image = m->image,
                                 .volume = m->volume,
                                 .ids = ids,
                                 .ids_images = u->ids_images,
                                 .ephemeral = (c->flags & SILT_CREATE_EPHEMERAL) != 0};
    if (silt_rootfs_mount(&rootfs, &m->root, &u->later, e) < 0)
        return -1;
    if ((c->flags & SILT_CREATE_HOST_USR) != 0)
        return silt_rootfs_usr(ids, &m->usr, e);
    return 0;
}

static int take_net(struct silt_priv_unit *u, struct making *m, struct silt_error *e)
{
    if (u->nnets == 0)
        return silt_net_make(u->home_net, &m->net, e);
    m->net = u->nets[--u->nnets];
    return 0;
}

void silt_priv_refill(struct silt_priv_unit *u)
{
    struct silt_error e;
    if (u->nnets >= u->nets_wanted)
        return;
    if (silt_net_make(u->home_net, &u->nets[u->nnets], &e) == 0)
        u->nnets++;
    else
        silt_log(SILT_LOG_WARN, "priv.no_net", "error=\"%s\"", e.text);
}

static int launch(const struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                  const struct making *m, int channel, int *ret_pidfd, struct silt_error *e)
{
    struct silt_launch l = {
        .slot = slot,
        .ids = silt_priv_unit_ids(u, slot),
        .root = m->root,
        .usr = m->usr,
        .volume = m->volume,
        .channel = channel,
        .cgroups = &u->cgroups,
        .birth = &m->birth,
        .handle_fds = m->handle_fds,
        .nhandle_fds = m->nhandle_fds,
        .handles = c->handles,
        .net = &m->net,
        .home_net = u->home_net,
        .seccomp = &u->seccomp,
        .init = u->init,
        .shm_bytes = c->limits.memory_bytes / 2,
        .hostname = c->hostname,
    };
    return silt_launch(&l, ret_pidfd, e);
}

static int create(struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                  struct making *m, int channel, int *ret_pidfd, struct silt_error *e)
{
    if (open_volume(u, slot, c, m, e) < 0)
        return -1;
    if (make_groups(u, slot, c, m, e) < 0)
        return -1;
    if (mount_root(u, slot, c, m, e) < 0)
        return -1;
    if (take_net(u, m, e) < 0)
        return -1;
    if (launch(u, slot, c, m, channel, ret_pidfd, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_KEEP, slot, m->root);
    return 0;
}

static void undo(struct silt_priv_unit *u, uint32_t slot, bool fresh)
{
    struct silt_error e;
    int done = fresh ? silt_priv_destroy(u, slot, &e) : silt_priv_stop(u, slot, &e);
    if (done < 0)
        silt_log(SILT_LOG_WARN, "priv.undo", "slot=%u error=\"%s\"", slot, e.text);
}

int silt_priv_create(struct silt_priv_unit *u, uint32_t slot, const struct silt_priv_create *c,
                     int channel, int *ret_pidfd, struct silt_error *e)
{
    struct making m = {.volume = -1,
                       .image = -1,
                       .root = -1,
                       .usr = -1,
                       .birth = {.into = -1, .oom = -1, .peak = -1, .pids = -1},
                       .net = {.ns = -1, .sysfs = -1}};
    if (check(c, e) < 0)
        return -1;
    int done = create(u, slot, c, &m, channel, ret_pidfd, e);
    close_making(&m);
    if (done < 0)
        undo(u, slot, (c->flags & SILT_CREATE_FRESH) != 0);
    return done;
}
