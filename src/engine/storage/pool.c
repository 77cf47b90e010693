/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/pool.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/storage/loopdev.h"
#include "engine/storage/pool_file.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

enum {
    QUOTA_ENABLE = 1,        /* BTRFS_QUOTA_CTL_ENABLE */
    QUOTA_ENABLE_SIMPLE = 4, /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, kernel 6.7 */
};

/* A pool that stays smaller than this mixes data and metadata: separate chunks could starve each
 * other. In larger ones mixing would cost speed, and the keeper balances. */
static const uint64_t mixed_below = 4ULL << 30;

static int is_btrfs(int dir, bool *ret, struct silt_error *e)
{
    struct statfs s;
    if (fstatfs(dir, &s) < 0)
        return silt_fail_errno(e, "look at the file system of the pool");
    *ret = (unsigned long)s.f_type == BTRFS_SUPER_MAGIC;
    return 0;
}

/* The kernel returns 0 if quotas of either kind are already on. */
static void enable_quotas(int pool)
{
    struct btrfs_ioctl_quota_ctl_args simple = {.cmd = QUOTA_ENABLE_SIMPLE};
    if (ioctl(pool, BTRFS_IOC_QUOTA_CTL, &simple) == 0)
        return;
    struct btrfs_ioctl_quota_ctl_args classic = {.cmd = QUOTA_ENABLE};
    if (ioctl(pool, BTRFS_IOC_QUOTA_CTL, &classic) == 0)
        return;
    if (errno == EROFS)
        return;
    silt_log(SILT_LOG_WARN, "pool.no_quotas", "errno=%d disk limits are not enforced", errno);
}

static int make_file_system(const char *path, bool mixed, struct silt_error *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork for mkfs.btrfs");
    if (pid == 0) {
        char *env[] = {(char[]){"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, NULL};
        int null = open("/dev/null", O_RDWR);
        if (null >= 0)
            (void)dup2(null, STDOUT_FILENO);
        (void)execvpe("mkfs.btrfs",
                      (char *[]){(char[]){"mkfs.btrfs"}, (char[]){"-q"}, (char[]){"-K"},
                                 (char[]){"-m"}, (char[]){"single"}, (char[]){"-L"},
                                 (char[]){"silt"}, (char *)(uintptr_t)path,
                                 mixed ? (char[]){"--mixed"} : NULL, NULL},
                      env);
        _exit(127);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return silt_fail_errno(e, "wait for mkfs.btrfs");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return silt_fail(e, SILT_UNAVAILABLE, "mkfs.btrfs is missing (package btrfs-progs)");
    if (status != 0)
        return silt_fail(e, SILT_INTERNAL, "mkfs.btrfs %s ended with status 0x%x", path, status);
    return 0;
}

/* Created under another name until complete: an interrupted mkfs leaves no half pool. */
static int make_image(int state, const char *state_dir, uint64_t max_bytes, struct silt_error *e)
{
    (void)unlinkat(state, "pool.img.new", 0);
    silt_auto_fd fd =
        openat(state, "pool.img.new", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "create %s/pool.img.new", state_dir);
    if (silt_pool_file_begin(fd, max_bytes, e) < 0)
        return -1;
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/pool.img.new", state_dir) >= (int)sizeof(path))
        return silt_fail(e, SILT_INVALID, "state directory name too long");
    if (make_file_system(path, max_bytes < mixed_below && !silt_without("pool_ahead"), e) < 0)
        return -1;
    if (fsync(fd) < 0 || renameat(state, "pool.img.new", state, "pool.img") < 0)
        return silt_fail_errno(e, "put %s/pool.img in place", state_dir);
    return 0;
}

static int open_image(int state, const char *state_dir, uint64_t max_bytes, int *ret_fd,
                      struct silt_error *e)
{
    if (faccessat(state, "pool.img", F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return silt_fail_errno(e, "look for %s/pool.img", state_dir);
        if (make_image(state, state_dir, max_bytes, e) < 0)
            return -1;
    }
    silt_auto_fd fd = openat(state, "pool.img", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open %s/pool.img", state_dir);
    if (!S_ISREG(st.st_mode))
        return silt_fail(e, SILT_INVALID, "%s/pool.img is not a file", state_dir);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

/* A pool that cannot be written, because its disk fails or because sandboxes of a former silt-super
 * hold one that turned read-only (EBUSY), is mounted read-only: its files can be rescued, and
 * silt-priv's keeper reports the problem. */
static int mount_device(const char *device, const char *at, struct silt_error *e)
{
    const char *options = silt_without("pool_ahead") ? "discard=async" : "nodiscard,skip_balance";
    const unsigned long flags = MS_NOATIME | MS_NOSUID | MS_NODEV;
    if (mount(device, at, "btrfs", flags, options) == 0)
        return 0;
    (void)silt_fail_errno(e, "mount %s at %s", device, at);
    if (mount(device, at, "btrfs", flags | MS_RDONLY, options) < 0
        && mount(device, at, "btrfs", flags | MS_RDONLY, "rescue=nologreplay") < 0)
        return silt_because(e, "nor for reading; `btrfs check` on %s says more", device);
    silt_log(SILT_LOG_ERROR, "pool.read_only", "error=\"%s\" it is mounted for reading", e->text);
    return 0;
}

/* The loop descriptor stays open until the mount holds the device: it detaches on last close. */
static int mount_loop(int loop, const char *at, struct silt_error *e)
{
    struct stat st;
    if (fstat(loop, &st) < 0)
        return silt_fail_errno(e, "look at the loop device");
    char source[64];
    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", loop);
    char device[64];
    ssize_t n = readlink(source, device, sizeof(device) - 1);
    if (n < 0)
        return silt_fail_errno(e, "name the loop device");
    device[n] = 0;
    return mount_device(device, at, e);
}

/* It is a mount point if the directory and its parent are on different file systems. */
static int is_mounted(int state, int pool, bool *ret, struct silt_error *e)
{
    struct stat a, b;
    if (fstat(state, &a) < 0 || fstat(pool, &b) < 0)
        return silt_fail_errno(e, "look at the pool directory");
    *ret = a.st_dev != b.st_dev;
    return 0;
}

static int mount_image(int state, const char *state_dir, uint64_t max_bytes, struct silt_error *e)
{
    silt_auto_fd image = -1;
    silt_auto_fd loop = -1;
    char at[PATH_MAX];
    if (snprintf(at, sizeof(at), "%s/pool", state_dir) >= (int)sizeof(at))
        return silt_fail(e, SILT_INVALID, "state directory name too long");
    if (open_image(state, state_dir, max_bytes, &image, e) < 0)
        return -1;
    if (silt_loopdev_attach(image, &loop, e) < 0)
        return -1;
    return mount_loop(loop, at, e);
}

static int open_pool(int state, int *ret_pool, struct silt_error *e)
{
    int pool = openat(state, "pool", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pool < 0)
        return silt_fail_errno(e, "open the pool directory");
    *ret_pool = pool;
    return 0;
}

static int mount_pool(const char *state_dir, uint64_t max_bytes, struct silt_error *e)
{
    silt_auto_fd state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return silt_fail_errno(e, "open %s", state_dir);
    if (mkdirat(state, "pool", 0700) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make %s/pool", state_dir);
    silt_auto_fd pool = -1;
    if (open_pool(state, &pool, e) < 0)
        return -1;
    bool native, mounted;
    if (is_btrfs(state, &native, e) < 0 || is_mounted(state, pool, &mounted, e) < 0)
        return -1;
    if (!native && !mounted) {
        if (mount_image(state, state_dir, max_bytes, e) < 0)
            return -1;
        silt_close_fd(&pool);
        if (open_pool(state, &pool, e) < 0)
            return -1;
    }
    enable_quotas(pool);
    return 0;
}

int silt_pool_mount(const char *state_dir, uint64_t max_bytes, struct silt_error *e)
{
    if (mount_pool(state_dir, max_bytes, e) < 0)
        return silt_because(e, "mount the disk pool of %s", state_dir);
    return 0;
}
