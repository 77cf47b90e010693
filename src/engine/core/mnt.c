/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/core/mnt.h"
#include "base/own.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int silt_mnt_make(const char *type, unsigned attributes, const struct silt_mnt_option *options,
                  int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fs = fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return silt_fail_errno(e, "open file system %s", type);
    for (; options != NULL && options->key != NULL; options++) {
        unsigned how = options->value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
        if (fsconfig(fs, how, options->key, options->value, 0) < 0)
            return silt_fail_errno(e, "set %s of %s", options->key, type);
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return silt_fail_errno(e, "create file system %s", type);
    int mount = fsmount(fs, FSMOUNT_CLOEXEC, attributes);
    if (mount < 0)
        return silt_fail_errno(e, "mount %s", type);
    *ret_fd = mount;
    return 0;
}

int silt_mnt_clone(int dir, const char *path, int *ret_fd, struct silt_error *e)
{
    int fd = open_tree(dir, path,
                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    if (fd < 0)
        return silt_fail_errno(e, "clone mount %s", path);
    *ret_fd = fd;
    return 0;
}

int silt_mnt_set(int mount, uint64_t attributes, struct silt_error *e)
{
    struct mount_attr attr = {.attr_set = attributes};
    if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return silt_fail_errno(e, "set mount attributes 0x%llx", (unsigned long long)attributes);
    return 0;
}

int silt_mnt_clone_as(int dir, const char *path, int userns, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd fd = -1;
    if (silt_mnt_clone(dir, path, &fd, e) < 0)
        return -1;
    uint64_t attributes = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
    if (!silt_without("nnp"))
        attributes |= MOUNT_ATTR_NOSUID;
    struct mount_attr attr = {.attr_set = attributes, .userns_fd = (unsigned)userns};
    if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return silt_fail_errno(e, "map the ids of mount %s", path);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_mnt_attach(int mount, int dir, const char *path, struct silt_error *e)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (path[0] == 0 ? MOVE_MOUNT_T_EMPTY_PATH : 0U);
    if (move_mount(mount, "", dir, path, flags) < 0)
        return silt_fail_errno(e, "attach mount at %s", path);
    return 0;
}

static int open_beneath(int root, const char *name, uint64_t resolve)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = resolve};
    if ((resolve & RESOLVE_NO_SYMLINKS) != 0)
        how.flags |= O_NOFOLLOW;
    return (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
}

int silt_mnt_target(int root, const char *name, int *ret_fd, struct silt_error *e)
{
    uint64_t resolve = RESOLVE_IN_ROOT;
    if (!silt_without("dev_symlink"))
        resolve |= RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    int fd = open_beneath(root, name, resolve);
    if (fd < 0 && errno == ENOENT && mkdirat(root, name, 0755) == 0)
        fd = open_beneath(root, name, resolve);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV))
        return silt_fail(e, SILT_INVALID, "image: /%s is not a plain directory", name);
    if (fd < 0)
        return silt_fail_errno(e, "open /%s of the image", name);
    *ret_fd = fd;
    return 0;
}

int silt_mnt_target_file(int root, const char *path, int *ret_fd, struct silt_error *e)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS};
    struct stat st;
    silt_auto_fd fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd < 0 && errno == ENOENT) {
        how.flags = O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        how.mode = 0644;
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return silt_fail_errno(e, "open /%s of the image", path);
    if (!S_ISREG(st.st_mode))
        return silt_fail(e, SILT_INVALID, "image: /%s is not a file", path);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_mnt_resize(const char *path, uint64_t bytes, struct silt_error *e)
{
    char size[24];
    (void)snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
    silt_auto_fd fs =
        fspick(AT_FDCWD, path, FSPICK_CLOEXEC | FSPICK_SYMLINK_NOFOLLOW | FSPICK_NO_AUTOMOUNT);
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0
        || fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
        return silt_fail_errno(e, "resize %s", path);
    return 0;
}

int silt_mnt_pivot(struct silt_error *e)
{
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return silt_fail_errno(e, "pivot_root");
    if (umount2(".", MNT_DETACH) < 0)
        return silt_fail_errno(e, "detach the old root");
    if (chdir("/") < 0)
        return silt_fail_errno(e, "enter the new root");
    return 0;
}
