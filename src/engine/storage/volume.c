/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/volume.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/core/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { NAME_SIZE = 48, USAGE_ROOM = 4096, GROUP_LEVEL_SHIFT = 48 };

static int open_sub(int pool, const char *name, int *ret_fd, struct silt_error *e)
{
    if (mkdirat(pool, name, 0700) < 0 && errno != EEXIST)
        return silt_fail_errno(e, "make pool/%s", name);
    int fd = openat(pool, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open pool/%s", name);
    *ret_fd = fd;
    return 0;
}

int silt_volumes_find_qgroups(const char *pool)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    silt_auto_fd fd = open(pool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
        return -1;
    const uint8_t *u = info.fsid;
    char path[96];
    (void)snprintf(path, sizeof(path),
                   "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                   "%02x%02x%02x%02x%02x%02x/qgroups",
                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
                   u[13], u[14], u[15]);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A level-1 group. If a whole disk is the pool, other programs may have groups, too: the inode of
 * `s` is a number unique to us. */
static void make_group(struct silt_volumes *v)
{
    struct stat st;
    if (fstat(v->slots, &st) < 0)
        return;
    struct btrfs_ioctl_qgroup_create_args args = {
        .create = 1, .qgroupid = 1ULL << GROUP_LEVEL_SHIFT | st.st_ino};
    if (ioctl(v->slots, BTRFS_IOC_QGROUP_CREATE, &args) == 0 || errno == EEXIST)
        v->group = args.qgroupid;
    else
        silt_log(SILT_LOG_WARN, "volume.no_group",
                 "errno=%d all sandboxes together are not limited", errno);
}

int silt_volumes_open(struct silt_volumes *v, const char *pool, int qgroups, struct silt_error *e)
{
    struct statfs s;
    *v = (struct silt_volumes){
        .slots = -1, .layers = -1, .records = -1, .trash = -1, .qgroups = qgroups};
    silt_auto_fd fd = open(pool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstatfs(fd, &s) < 0)
        return silt_fail_errno(e, "open %s", pool);
    v->btrfs = (unsigned long)s.f_type == BTRFS_SUPER_MAGIC;
    if (!v->btrfs)
        silt_log(SILT_LOG_WARN, "volume.no_quota", "the pool is not on btrfs: disk is not limited");
    if (open_sub(fd, "s", &v->slots, e) < 0 || open_sub(fd, "l", &v->layers, e) < 0
        || open_sub(fd, "r", &v->records, e) < 0)
        return -1;
    if (open_sub(fd, "trash", &v->trash, e) < 0)
        return -1;
    if (v->btrfs)
        make_group(v);
    return 0;
}

static void name_of(uint32_t slot, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, "%u", slot);
}

/* 0, or -1 with errno. */
static int make_directory(const struct silt_volumes *v, const char *name)
{
    if (!v->btrfs)
        return mkdirat(v->slots, name, 0700);
    struct {
        struct btrfs_qgroup_inherit head;
        uint64_t group;
    } member = {.head.num_qgroups = 1, .group = v->group};
    struct btrfs_ioctl_vol_args_v2 args = {0};
    if (v->group != 0) {
        args.flags = BTRFS_SUBVOL_QGROUP_INHERIT;
        args.size = sizeof(member);
        args.qgroup_inherit = &member.head;
    }
    memcpy(args.name, name, strlen(name));
    return ioctl(v->slots, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

int silt_volume_snapshot(const struct silt_volumes *v, int source, int dir, const char *name,
                         struct silt_error *e)
{
    struct {
        struct btrfs_qgroup_inherit head;
        uint64_t group;
    } member = {.head.num_qgroups = 1, .group = v->group};
    struct btrfs_ioctl_vol_args_v2 args = {.fd = source};
    size_t len = strlen(name);
    if (!v->btrfs)
        return silt_fail(e, SILT_UNAVAILABLE, "the pool is not on btrfs: there are no copies");
    if (len >= sizeof(args.name))
        return silt_fail(e, SILT_INVALID, "a name of %zu bytes", len);
    if (v->group != 0) {
        args.flags = BTRFS_SUBVOL_QGROUP_INHERIT;
        args.size = sizeof(member);
        args.qgroup_inherit = &member.head;
    }
    memcpy(args.name, name, len);
    if (ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        return silt_fail_errno(e, "make a copy");
    return 0;
}

static int furnish(int volume, uid_t owner, struct silt_error *e)
{
    if (fchmod(volume, 0700) < 0 || mkdirat(volume, "upper", 0755) < 0
        || mkdirat(volume, "work", 0700) < 0 || mkdirat(volume, "state", 0700) < 0)
        return silt_fail_errno(e, "make the volume's directories");
    if (fchownat(volume, "upper", owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "give the layer to its owner");
    return 0;
}

int silt_volume_open(const struct silt_volumes *v, uint32_t slot, int *ret_fd, struct silt_error *e)
{
    char name[NAME_SIZE];
    name_of(slot, name);
    int fd = openat(v->slots, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open volume %u", slot);
    *ret_fd = fd;
    return 0;
}

int silt_volume_make(const struct silt_volumes *v, uint32_t slot, uid_t owner, int *ret_fd,
                     struct silt_error *e)
{
    char name[NAME_SIZE];
    name_of(slot, name);
    if (make_directory(v, name) < 0) {
        if (errno != EEXIST)
            return silt_fail_errno(e, "make volume %u", slot);
        if (silt_volume_discard(v, slot, e) < 0)
            return -1;
        if (make_directory(v, name) < 0)
            return silt_fail_errno(e, "make volume %u", slot);
    }
    silt_auto_fd fd = -1;
    if (silt_volume_open(v, slot, &fd, e) < 0)
        return -1;
    if (furnish(fd, owner, e) < 0)
        return silt_because(e, "make volume %u", slot);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

static int subvolume_id(int volume, uint64_t *ret, struct silt_error *e)
{
    struct btrfs_ioctl_ino_lookup_args args = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
    if (ioctl(volume, BTRFS_IOC_INO_LOOKUP, &args) < 0)
        return silt_fail_errno(e, "find the volume's number");
    *ret = args.treeid;
    return 0;
}

/* silt-priv's own writes count as well: state/ is in the subvolume. Called through `slots`: the
 * kernel reserves space for the change in the subvolume of the descriptor, and a full one has
 * none. */
int silt_volume_limit(const struct silt_volumes *v, int volume, uint64_t bytes,
                      struct silt_error *e)
{
    if (!v->btrfs)
        return 0;
    uint64_t id;
    if (subvolume_id(volume, &id, e) < 0)
        return -1;
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = id,
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes},
    };
    if (ioctl(v->slots, BTRFS_IOC_QGROUP_LIMIT, &args) == 0)
        return 0;
    if (errno == ENOTCONN) { /* quotas are off; silt-super has logged that */
        silt_log(SILT_LOG_WARN, "volume.no_quota", "disk limit of %llu bytes is not enforced",
                 (unsigned long long)bytes);
        return 0;
    }
    return silt_fail_errno(e, "limit the volume to %llu bytes", (unsigned long long)bytes);
}

/* sysfs has the current usage; the quota tree on disk is as old as the last commit. */
static int usage_in_sysfs(const struct silt_volumes *v, uint64_t id, uint64_t *ret,
                          struct silt_error *e)
{
    char path[64];
    char text[32];
    (void)snprintf(path, sizeof(path), "%llu_%llu/referenced",
                   (unsigned long long)(id >> GROUP_LEVEL_SHIFT),
                   (unsigned long long)(id & ((1ULL << GROUP_LEVEL_SHIFT) - 1)));
    silt_auto_fd fd = openat(v->qgroups, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (n <= 0)
        return silt_fail_read(e, n, "read %s", path);
    silt_slice number = {text, text[n - 1] == '\n' ? (size_t)n - 1 : (size_t)n};
    return silt_slice_to_u64(number, 0, UINT64_MAX, ret, e);
}

static int usage_on_disk(int pool, uint64_t id, uint64_t *ret, struct silt_error *e)
{
    _Alignas(struct btrfs_ioctl_search_args_v2) char room[USAGE_ROOM] = {0};
    struct btrfs_ioctl_search_args_v2 *args = (struct btrfs_ioctl_search_args_v2 *)(void *)room;
    args->key = (struct btrfs_ioctl_search_key){.tree_id = BTRFS_QUOTA_TREE_OBJECTID,
                                                .min_type = BTRFS_QGROUP_INFO_KEY,
                                                .max_type = BTRFS_QGROUP_INFO_KEY,
                                                .min_offset = id,
                                                .max_offset = id,
                                                .max_transid = UINT64_MAX,
                                                .nr_items = 1};
    args->buf_size = sizeof(room) - sizeof(*args);
    if (ioctl(pool, BTRFS_IOC_TREE_SEARCH_V2, args) < 0)
        return silt_fail_errno(e, "search the quota tree");
    struct btrfs_ioctl_search_header head;
    struct btrfs_qgroup_info_item item;
    if (args->key.nr_items == 0)
        return silt_fail(e, SILT_NOT_FOUND, "volume %llu has no quota item",
                         (unsigned long long)id);
    memcpy(&head, room + sizeof(*args), sizeof(head));
    if (head.type != BTRFS_QGROUP_INFO_KEY || head.len < sizeof(item))
        return silt_fail(e, SILT_INTERNAL, "quota item of type %u, %u bytes", head.type, head.len);
    memcpy(&item, room + sizeof(*args) + sizeof(head), sizeof(item));
    *ret = item.rfer; /* little-endian, like all machines we support */
    return 0;
}

static int group_usage(const struct silt_volumes *v, uint64_t id, uint64_t *ret,
                       struct silt_error *e)
{
    if (v->qgroups >= 0 && usage_in_sysfs(v, id, ret, e) == 0)
        return 0;
    return usage_on_disk(v->slots, id, ret, e);
}

int silt_volume_usage(const struct silt_volumes *v, int volume, uint64_t *ret, struct silt_error *e)
{
    uint64_t id;
    *ret = 0;
    if (!v->btrfs)
        return 0;
    if (subvolume_id(volume, &id, e) < 0)
        return -1;
    return group_usage(v, id, ret, e);
}

int silt_volumes_usage(const struct silt_volumes *v, uint64_t *ret, struct silt_error *e)
{
    return group_usage(v, v->group, ret, e);
}

static bool assign(const struct silt_volumes *v, int volume, bool member)
{
    struct silt_error e;
    uint64_t id;
    if (v->group == 0 || subvolume_id(volume, &id, &e) < 0)
        return false;
    struct btrfs_ioctl_qgroup_assign_args args = {.assign = member, .src = id, .dst = v->group};
    return ioctl(v->slots, BTRFS_IOC_QGROUP_ASSIGN, &args) > 0;
}

bool silt_volume_join(const struct silt_volumes *v, int volume)
{
    return assign(v, volume, true);
}

bool silt_volume_leave(const struct silt_volumes *v, int volume)
{
    return assign(v, volume, false);
}

int silt_volume_spool(int volume, int *ret_fd, struct silt_error *e)
{
    int fd = openat(volume, "state", O_TMPFILE | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "make a spool file");
    *ret_fd = fd;
    return 0;
}

static void log_path(uint64_t number, char path[NAME_SIZE])
{
    (void)snprintf(path, NAME_SIZE, "state/log-%llx", (unsigned long long)number);
}

int silt_volume_log(int volume, uint64_t number, bool fresh, int *ret_fd, struct silt_error *e)
{
    char path[NAME_SIZE];
    log_path(number, path);
    int fd = openat(volume, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (fresh ? O_CREAT | O_EXCL : 0),
                    0600);
    if (fd < 0)
        return silt_fail_errno(e, "%s %s", fresh ? "make" : "open", path);
    *ret_fd = fd;
    return 0;
}

int silt_volume_unlog(int volume, uint64_t number, struct silt_error *e)
{
    char path[NAME_SIZE];
    log_path(number, path);
    if (unlinkat(volume, path, 0) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "remove %s", path);
    return 0;
}

/* Since 6.11 the kernel removes the quota group of a deleted subvolume itself, and refuses our
 * request. */
static void forget_qgroup(const struct silt_volumes *v, uint64_t id)
{
    struct btrfs_ioctl_qgroup_create_args args = {.create = 0, .qgroupid = id};
    (void)ioctl(v->trash, BTRFS_IOC_QGROUP_CREATE, &args);
}

static int delete_volume(const struct silt_volumes *v, int dir, const char *name,
                         struct silt_error *e)
{
    uint64_t id = 0;
    silt_auto_fd volume = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool counted = v->btrfs && volume >= 0 && subvolume_id(volume, &id, e) == 0;
    silt_close_fd(&volume);
    if (silt_remove(dir, name, e) < 0)
        return -1;
    if (counted)
        forget_qgroup(v, id);
    return 0;
}

int silt_volume_discard(const struct silt_volumes *v, uint32_t slot, struct silt_error *e)
{
    char name[NAME_SIZE];
    name_of(slot, name);
    return silt_volume_discard_as(v, name, slot, e);
}

int silt_volume_discard_as(const struct silt_volumes *v, const char *name, uint32_t slot,
                           struct silt_error *e)
{
    char gone[NAME_SIZE];
    (void)snprintf(gone, sizeof(gone), "%u-%llu", slot, (unsigned long long)silt_clock_us());
    if (renameat(v->slots, name, v->trash, gone) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOSPC) /* a full file system only has room for deletions */
        return delete_volume(v, v->slots, name, e);
    return silt_fail_errno(e, "move volume %u to the trash", slot);
}

/* Waits for the disk. */
static void clean(const struct silt_volumes *v)
{
    (void)ioctl(v->trash, BTRFS_IOC_SYNC); /* this also wakes the kernel's cleaner */
}

int silt_volumes_empty_trash(const struct silt_volumes *v, struct silt_error *e)
{
    int fd = openat(v->trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        silt_close_fd(&fd);
        return silt_fail_errno(e, "list the trash");
    }
    int result = 0;
    bool layers = false;
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d)) {
        layers = layers || it->d_name[0] == 'l';
        if (it->d_name[0] != '.' && delete_volume(v, v->trash, it->d_name, e) < 0)
            result = -1;
    }
    (void)closedir(d);
    if (v->btrfs && layers) /* a sandbox may have no other space left than that of its snapshot */
        clean(v);
    return result;
}

bool silt_volumes_are_crowded(const struct silt_volumes *v)
{
    enum { PART = 8 };
    static const uint64_t enough = 16ULL << 30; /* also if a whole disk is the pool */
    struct statfs s;
    return fstatfs(v->trash, &s) == 0 && s.f_bavail < s.f_blocks / PART
           && s.f_bavail * (uint64_t)s.f_bsize < enough;
}

bool silt_volumes_hurry(const struct silt_volumes *v)
{
    if (!v->btrfs || !silt_volumes_are_crowded(v))
        return false;
    clean(v);
    return true;
}

pid_t silt_volume_init(int volume)
{
    silt_auto_fd fd = openat(volume, "state/init", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int32_t number = 0;
    if (fd < 0 || read(fd, &number, sizeof(number)) != (ssize_t)sizeof(number))
        return 0;
    return number > 0 ? number : 0;
}

void silt_volume_forget_init(int volume)
{
    (void)unlinkat(volume, "state/init", 0);
}

int silt_volume_note_ready(int volume, struct silt_error *e)
{
    silt_auto_fd fd =
        openat(volume, "state/ready", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? 0 : silt_fail_errno(e, "note a ready sandbox");
}

void silt_volume_forget_ready(int volume)
{
    (void)unlinkat(volume, "state/ready", 0);
}

bool silt_volume_is_ready(int volume)
{
    return faccessat(volume, "state/ready", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
