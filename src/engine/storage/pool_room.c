/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/pool_room.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

enum { SPACES_MAX = 32, DEVICES_MAX = 64, USAGE_PERCENT = 80 };

static const uint64_t mib = 1 << 20;

/* ---- looking ---- */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static int look_at_spaces(int pool, struct silt_pool_room *r, struct silt_error *e)
{
    struct {
        struct btrfs_ioctl_space_args args;
        struct btrfs_ioctl_space_info spaces[SPACES_MAX];
    } q = {.args.space_slots = SPACES_MAX};
    if (ioctl(pool, BTRFS_IOC_SPACE_INFO, &q) < 0)
        return silt_fail_errno(e, "look at the pool's chunks");
    for (uint64_t i = 0; i < q.args.total_spaces && i < SPACES_MAX; i++) {
        const struct btrfs_ioctl_space_info *s = &q.spaces[i];
        if ((s->flags & BTRFS_SPACE_INFO_GLOBAL_RSV) != 0)
            continue;
        bool data = (s->flags & BTRFS_BLOCK_GROUP_DATA) != 0;
        bool metadata = (s->flags & BTRFS_BLOCK_GROUP_METADATA) != 0;
        r->mixed = r->mixed || (data && metadata);
        r->data_spare += data ? less(s->total_bytes, s->used_bytes) : 0;
        r->metadata_spare += metadata ? less(s->total_bytes, s->used_bytes) : 0;
    }
    return 0;
}

static void look_at_devices(int pool, struct silt_pool_room *r)
{
    struct btrfs_ioctl_fs_info_args fs = {0};
    if (ioctl(pool, BTRFS_IOC_FS_INFO, &fs) < 0)
        return;
    for (uint64_t i = 1; i <= fs.max_id && i <= DEVICES_MAX; i++) {
        struct btrfs_ioctl_dev_info_args device = {.devid = i};
        struct btrfs_ioctl_get_dev_stats stats = {.devid = i,
                                                  .nr_items = BTRFS_DEV_STAT_VALUES_MAX};
        if (ioctl(pool, BTRFS_IOC_DEV_INFO, &device) == 0)
            r->unallocated += less(device.total_bytes, device.bytes_used);
        if (ioctl(pool, BTRFS_IOC_GET_DEV_STATS, &stats) < 0)
            continue;
        for (uint64_t k = 0; k < stats.nr_items && k < BTRFS_DEV_STAT_VALUES_MAX; k++)
            r->errors += stats.values[k];
    }
}

int silt_pool_room_look(const struct silt_volumes *v, struct silt_pool_room *ret,
                        struct silt_error *e)
{
    struct statfs s;
    struct silt_pool_room r = {0};
    if (fstatfs(v->slots, &s) < 0)
        return silt_fail_errno(e, "look at the pool");
    r.size = (uint64_t)s.f_blocks * (uint64_t)s.f_bsize;
    r.free = (uint64_t)s.f_bavail * (uint64_t)s.f_bsize;
    r.read_only = (s.f_flags & ST_RDONLY) != 0;
    if (v->btrfs && look_at_spaces(v->slots, &r, e) < 0)
        return -1;
    if (v->btrfs)
        look_at_devices(v->slots, &r);
    *ret = r;
    return 0;
}

uint64_t silt_pool_room_margin(const struct silt_pool_room *r)
{
    uint64_t part = r->size / 64;
    part = part < 16 * mib ? 16 * mib : part;
    return part > 256 * mib ? 256 * mib : part;
}

/* Running out of metadata is worse than running out of data: btrfs turns read-only. Guests create
 * at most some tens of MiB of it between two looks; when it is that short, all writes count as
 * metadata. */
uint64_t silt_pool_room_left(const struct silt_pool_room *r, uint64_t keep)
{
    uint64_t margin = silt_pool_room_margin(r), left = less(r->free, keep);
    uint64_t metadata = r->metadata_spare + r->unallocated / 2; /* it may be stored twice */
    if (r->mixed || metadata >= 2 * margin)
        return left;
    uint64_t bound = less(metadata, margin);
    return left < bound ? left : bound;
}

/* ---- the group ---- */

void silt_pool_room_gather(const struct silt_volumes *v)
{
    int fd = v->group == 0 ? -1 : openat(v->slots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool rescan = false;
    if (d == NULL) {
        silt_close_fd(&fd);
        return;
    }
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d)) {
        silt_auto_fd volume =
            openat(v->slots, it->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rescan |= it->d_name[0] != '.' && volume >= 0 && silt_volume_join(v, volume);
    }
    (void)closedir(d);
    if (rescan)
        silt_pool_room_rescan(v);
}

void silt_pool_room_rescan(const struct silt_volumes *v)
{
    struct btrfs_ioctl_quota_rescan_args args = {0};
    (void)ioctl(v->slots, BTRFS_IOC_QUOTA_RESCAN, &args);
}

int silt_pool_room_limit(const struct silt_volumes *v, uint64_t left, uint64_t *limit,
                         struct silt_error *e)
{
    uint64_t used;
    if (v->group == 0)
        return 0;
    if (silt_volumes_usage(v, &used, e) < 0)
        return -1;
    if (less(used + left, *limit) < mib && less(*limit, used + left) < mib)
        return 0;
    *limit = used + left;
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = v->group,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = *limit},
    };
    if (ioctl(v->slots, BTRFS_IOC_QGROUP_LIMIT, &args) < 0)
        return silt_fail_errno(e, "limit what all sandboxes write");
    return 0;
}

/* ---- balancing ---- */

static uint64_t large(const struct silt_pool_room *r)
{
    uint64_t part = r->size / 8; /* btrfs's chunks are a tenth of it, or 1 GiB */
    return part > 1024 * mib ? 1024 * mib : part;
}

bool silt_pool_room_is_wasted(const struct silt_pool_room *r)
{
    return !r->read_only && !r->mixed && r->unallocated < 2 * silt_pool_room_margin(r)
           && (r->data_spare > large(r) || r->metadata_spare > large(r));
}

int silt_pool_room_balance(const struct silt_volumes *v, const struct silt_pool_room *r,
                           struct silt_error *e)
{
    struct btrfs_balance_args chunks = {.flags =
                                            BTRFS_BALANCE_ARGS_USAGE | BTRFS_BALANCE_ARGS_LIMIT,
                                        .usage = USAGE_PERCENT,
                                        .limit = 1};
    bool data = r->data_spare > large(r);
    struct btrfs_ioctl_balance_args args = {.flags =
                                                data ? BTRFS_BALANCE_DATA : BTRFS_BALANCE_METADATA};
    if (data)
        args.data = chunks;
    else
        args.meta = chunks;
    if (ioctl(v->slots, BTRFS_IOC_BALANCE_V2, &args) < 0)
        return silt_fail_errno(e, "balance the pool");
    return 0;
}

void silt_pool_room_forget_balance(const struct silt_volumes *v)
{
    (void)ioctl(v->slots, BTRFS_IOC_BALANCE_CTL, BTRFS_BALANCE_CTL_CANCEL);
}
