/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: every way to change the mount table; what works is undone at once. */
#define _GNU_SOURCE
#include "attempt.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OPEN_TREE = 428,
    MOVE_MOUNT = 429,
    FSOPEN = 430,
    FSCONFIG = 431,
    FSMOUNT = 432,
    FSPICK = 433,
    MOUNT_SETATTR = 442
};
enum { TREE_CLONE = 1, CONFIG_CREATE = 6, EMPTY_PATH_FROM = 4, AT_PATH_EMPTY = 0x1000 };

static void mounting(const char *name, const char *source, const char *target, const char *type,
                     unsigned long flags)
{
    if (attempt(name, mount(source, target, type, flags, NULL)) >= 0 && !(flags & MS_REMOUNT))
        umount2(target, MNT_DETACH);
}

static void old_calls(void)
{
    mkdir("/mnt", 0755);
    mounting("tmpfs", "none", "/mnt", "tmpfs", 0);
    mounting("bind-root", "/", "/mnt", NULL, MS_BIND | MS_REC);
    mounting("bind-parent", "..", "/mnt", NULL, MS_BIND);
    mounting("tmpfs-over-proc", "none", "/proc", "tmpfs", 0);
    mounting("fresh-proc", "none", "/mnt", "proc", 0);
    mounting("fresh-sysfs", "none", "/mnt", "sysfs", 0);
    mounting("cgroup", "none", "/mnt", "cgroup2", 0);
    mounting("devpts", "none", "/mnt", "devpts", 0);
    mounting("remount-proc-sys", NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND);
    mounting("remount-sys", NULL, "/sys", NULL, MS_REMOUNT | MS_BIND);
    mounting("propagation", NULL, "/", NULL, MS_SHARED);
    mounting("move", "/proc", "/mnt", NULL, MS_MOVE);
    attempt("umount-mask", umount2("/proc/keys", MNT_DETACH));
    attempt("umount-proc-sys", umount2("/proc/sys", MNT_DETACH));
    attempt("umount-root", umount2("/", MNT_DETACH));
    attempt("pivot_root", syscall(SYS_pivot_root, "/", "/mnt"));
}

static void new_calls(void)
{
    int fs = (int)attempt("fsopen", syscall(FSOPEN, "tmpfs", 0));
    if (fs >= 0) {
        attempt("fsconfig", syscall(FSCONFIG, fs, CONFIG_CREATE, NULL, NULL, 0));
        int mounted = (int)attempt("fsmount", syscall(FSMOUNT, fs, 0, 0));
        if (mounted >= 0)
            attempt("move_mount",
                    syscall(MOVE_MOUNT, mounted, "", AT_FDCWD, "/mnt", EMPTY_PATH_FROM));
        umount2("/mnt", MNT_DETACH);
    }
    attempt("open_tree", syscall(OPEN_TREE, AT_FDCWD, "/", TREE_CLONE));
    attempt("fspick", syscall(FSPICK, AT_FDCWD, "/", 0));
    unsigned long long attributes[4] = {0, 1, 0, 0}; /* clear read-only */
    attempt("mount_setattr",
            syscall(MOUNT_SETATTR, AT_FDCWD, "/proc/sys", 0, attributes, sizeof attributes));
}

int main(void)
{
    old_calls();
    new_calls();
    return 0;
}
