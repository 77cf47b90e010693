/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/pool_file.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "engine/storage/loopdev.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum { EXTENTS = 64 };

static const uint64_t mib = 1 << 20;
static const uint64_t least = 256ULL << 20; /* below this mkfs.btrfs refuses or leaves no space */
static const uint64_t grain = 16ULL << 20;  /* sizes are multiples of this */
static const uint64_t step_max = 1ULL << 30;
static const uint64_t step_least = 64ULL << 20; /* less is not worth a transaction */

uint64_t silt_pool_file_disk_free(int fd)
{
    struct statfs s;
    return fstatfs(fd, &s) < 0 ? 0 : (uint64_t)s.f_bavail * (uint64_t)s.f_bsize;
}

/* A guest writes at most 2 GB/s, and the keeper looks several times a second. */
uint64_t silt_pool_file_ahead(uint64_t max)
{
    uint64_t part = max / 16;
    part = part < 1 << 30 ? 1 << 30 : part;
    return part > 8ULL << 30 ? 8ULL << 30 : part;
}

static uint64_t affordable(int fd, uint64_t reserve)
{
    uint64_t left = silt_pool_file_disk_free(fd);
    return left > reserve ? left - reserve : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* If the file system below cannot allocate, the pool still grows only as the reserve allows. */
static int allocate(int image, uint64_t from, uint64_t bytes, struct silt_error *e)
{
    static bool told;
    if (fallocate(image, 0, (off_t)from, (off_t)bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return silt_fail_errno(e, "allocate %llu MiB of the pool file",
                               (unsigned long long)(bytes / mib));
    if (!told)
        silt_log(SILT_LOG_WARN, "pool.sparse",
                 "the disk cannot allocate ahead: when others fill it, "
                 "the pool turns read-only");
    told = true;
    struct stat st;
    if (fstat(image, &st) < 0
        || ((uint64_t)st.st_size < from + bytes && ftruncate(image, (off_t)(from + bytes)) < 0))
        return silt_fail_errno(e, "enlarge the pool file");
    return 0;
}

int silt_pool_file_begin(int image, uint64_t max, struct silt_error *e)
{
    if (max < least)
        return silt_fail(e, SILT_INVALID, "disk.pool is %llu MiB, at least %llu",
                         (unsigned long long)(max / mib), (unsigned long long)(least / mib));
    if (silt_without("pool_ahead")) {
        if (ftruncate(image, (off_t)max) < 0)
            return silt_fail_errno(e, "enlarge the pool file");
        return 0;
    }
    return allocate(image, 0, least, e);
}

int silt_pool_file_open(const char *state_dir, uint64_t max, uint64_t reserve,
                        struct silt_pool_file *ret, struct silt_error *e)
{
    char path[PATH_MAX];
    *ret = (struct silt_pool_file){.image = -1, .loop = -1, .max = max, .reserve = reserve};
    if (snprintf(path, sizeof(path), "%s/pool.img", state_dir) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "state directory name too long");
    silt_auto_fd image = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (image < 0 && errno != ENOENT)
        return silt_fail_errno(e, "open %s", path);
    if (image < 0)
        return 0;
    int loop = silt_loopdev_find(image);
    if (loop < 0)
        return 0; /* the state directory is on btrfs now; an old pool file lies beside it */
    ret->image = silt_take_fd(&image);
    ret->loop = loop;
    return 0;
}

void silt_pool_file_close(struct silt_pool_file *f)
{
    silt_close_fd(&f->loop);
    silt_close_fd(&f->image);
}

static int resize(int pool, const char *to, struct silt_error *e)
{
    struct btrfs_ioctl_vol_args args = {0};
    (void)snprintf(args.name, sizeof(args.name), "%s", to);
    int got = ioctl(pool, BTRFS_IOC_RESIZE, &args);
    if (got > 0) /* BTRFS_ERROR_DEV_EXCL_RUN_IN_PROGRESS: a balance */
        return silt_fail(e, SILT_CONFLICT, "resize the pool to %s: it is busy", to);
    if (got < 0)
        return silt_fail_errno(e, "resize the pool to %s", to);
    return 0;
}

static int find_used(int pool, uint64_t *ret_size, uint64_t *ret_used, struct silt_error *e)
{
    struct btrfs_ioctl_dev_info_args args = {.devid = 1};
    if (ioctl(pool, BTRFS_IOC_DEV_INFO, &args) < 0)
        return silt_fail_errno(e, "look at the pool's device");
    *ret_size = args.total_bytes;
    *ret_used = args.bytes_used;
    return 0;
}

/* How much of this part of the file is allocated. Without FIEMAP: 0. */
static uint64_t find_allocated(int image, uint64_t from, uint64_t bytes)
{
    struct {
        struct fiemap map;
        struct fiemap_extent extents[EXTENTS];
    } q = {0};
    uint64_t sum = 0, at = from, end = from + bytes;
    while (at < end) {
        q.map = (struct fiemap){.fm_start = at, .fm_length = end - at, .fm_extent_count = EXTENTS};
        if (ioctl(image, FS_IOC_FIEMAP, &q) < 0 || q.map.fm_mapped_extents == 0)
            break;
        for (uint32_t i = 0; i < q.map.fm_mapped_extents; i++) {
            const struct fiemap_extent *x = &q.extents[i];
            uint64_t first = x->fe_logical > at ? x->fe_logical : at;
            uint64_t last = smaller(x->fe_logical + x->fe_length, end);
            sum += last > first ? last - first : 0;
            at = last > at ? last : at;
        }
    }
    return sum;
}

/* A pool file of a former version has its maximum size, with holes. */
static bool has_holes(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512 + mib < (uint64_t)st->st_size;
}

/* btrfs first: it moves the data at the end. */
static int shrink(struct silt_pool_file *f, int pool, uint64_t to, struct silt_error *e)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)to);
    if (resize(pool, text, e) < 0)
        return -1;
    if (ftruncate(f->image, (off_t)to) < 0)
        return silt_fail_errno(e, "shorten the pool file");
    return silt_loopdev_resize(f->loop, e);
}

static int fill_holes(struct silt_pool_file *f, uint64_t size, struct silt_error *e)
{
    for (uint64_t at = 0; at < size; at += step_max) {
        uint64_t bytes = smaller(step_max, size - at);
        uint64_t missing = bytes - find_allocated(f->image, at, bytes);
        if (missing > affordable(f->image, f->reserve))
            return silt_fail(
                e, SILT_NO_SPACE,
                "the pool file has holes that the disk cannot fill and keep its reserve of "
                "%llu MiB: free some room there, then restart",
                (unsigned long long)(f->reserve / mib));
        if (missing > 0 && allocate(f->image, at, bytes, e) < 0)
            return -1;
    }
    return 0;
}

/* Once: nothing creates holes afterwards. */
static int check_holes(struct silt_pool_file *f, int pool, struct silt_error *e)
{
    struct stat st;
    uint64_t size, used;
    struct silt_error why;
    f->checked = true;
    if (fstat(f->image, &st) < 0)
        return silt_fail_errno(e, "look at the pool file");
    if (!has_holes(&st))
        return 0;
    if (find_used(pool, &size, &used, e) < 0)
        return -1;
    uint64_t enough = (used / grain + 1) * grain + silt_pool_file_ahead(f->max);
    if (enough < size && shrink(f, pool, enough, &why) < 0)
        silt_log(SILT_LOG_WARN, "pool.shrink", "error=\"%s\"", why.text);
    if (fstat(f->image, &st) < 0)
        return silt_fail_errno(e, "look at the pool file");
    silt_log(SILT_LOG_INFO, "pool.fill", "mib=%llu was=%llu",
             (unsigned long long)((uint64_t)st.st_size / mib), (unsigned long long)(size / mib));
    return fill_holes(f, (uint64_t)st.st_size, e);
}

static int grow(struct silt_pool_file *f, int pool, uint64_t size, uint64_t step,
                struct silt_error *e)
{
    if ((step > 0 && allocate(f->image, size, step, e) < 0) || silt_loopdev_resize(f->loop, e) < 0
        || resize(pool, "max", e) < 0)
        return -1;
    silt_log(SILT_LOG_INFO, "pool.grow", "mib=%llu max=%llu",
             (unsigned long long)((size + step) / mib), (unsigned long long)(f->max / mib));
    return 0;
}

/* 0: there is enough unused space, or no more can be had. */
static uint64_t next_step(const struct silt_pool_file *f, uint64_t size, uint64_t unused)
{
    uint64_t ahead = silt_pool_file_ahead(f->max);
    if (unused >= ahead || size >= f->max)
        return 0;
    uint64_t step = smaller(smaller(2 * ahead - unused, step_max), f->max - size);
    step = smaller(step, affordable(f->image, f->reserve)) / grain * grain;
    return step < step_least && size + step + grain <= f->max ? 0 : step;
}

int silt_pool_file_tend(struct silt_pool_file *f, int pool, bool *ret_more, struct silt_error *e)
{
    struct stat st;
    uint64_t device, used;
    *ret_more = false;
    if (f->image < 0 || silt_without("pool_ahead"))
        return 0;
    if (!f->checked && check_holes(f, pool, e) < 0)
        return -1;
    if (fstat(f->image, &st) < 0)
        return silt_fail_errno(e, "look at the pool file");
    if (find_used(pool, &device, &used, e) < 0)
        return -1;
    uint64_t size = (uint64_t)st.st_size;
    uint64_t step = size > device + grain ? 0 /* the last step was interrupted */
                                          : next_step(f, size, device - used);
    if (step == 0 && size <= device + grain)
        return 0;
    *ret_more = true;
    return grow(f, pool, size, step, e);
}
