/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/mounts.h"
#include "base/fd.h"
#include "engine/core/mnt.h"
#include "engine/launch/mount_stage.h"
#include "engine/launch/template.h"
#include "engine/launch/test_holes.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static const unsigned harmless = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

/* Safe attributes, unless a test needs setuid programs to work. */
static unsigned attributes(unsigned wanted)
{
    return silt_without("nnp") ? wanted & ~(unsigned)MOUNT_ATTR_NOSUID : wanted;
}

/* /proc */

struct user_limit {
    const char *file, *value;
};

static const struct user_limit inotify_limits[] = {
    {"max_inotify_instances", "128"},
    {"max_inotify_watches", "65536"},
};

static const struct user_limit namespace_limits[] = {
    {"max_user_namespaces", "0"},   {"max_mnt_namespaces", "0"},  {"max_pid_namespaces", "0"},
    {"max_net_namespaces", "0"},    {"max_ipc_namespaces", "0"},  {"max_uts_namespaces", "0"},
    {"max_cgroup_namespaces", "0"}, {"max_time_namespaces", "0"},
};

/* Limits unknown to this kernel are skipped. */
static int put_limits(int user, const struct user_limit *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (silt_fd_put(user, list[i].file, list[i].value, e) < 0 && e->sys != ENOENT)
            return -1;
    return 0;
}

/* For this user namespace and all below it. From here on we cannot create mounts either: a detached
 * mount counts as a mount namespace. */
static int limit_user(int user, struct silt_error *e)
{
    if (put_limits(user, inotify_limits, SILT_COUNT(inotify_limits), e) < 0)
        return -1;
    if (silt_without("userns_limit"))
        return 0;
    return put_limits(user, namespace_limits, SILT_COUNT(namespace_limits), e);
}

struct mask {
    const char *path;
    const char *cover;
    const char *protection; /* the test switch that removes it */
};

/* What stays visible, and why: tests/escape/visible.txt. Some of these only the machine's root
 * could read; they are masked in case a kernel is less strict. */
static const struct mask proc_masks[] = {
    {"kcore", SILT_TEMPLATE_MASK, "masks"},
    {"keys", SILT_TEMPLATE_MASK, "masks"},
    {"key-users", SILT_TEMPLATE_MASK, "masks"},
    {"timer_list", SILT_TEMPLATE_MASK, "masks"},
    {"sysrq-trigger", SILT_TEMPLATE_MASK, "masks"},
    {"kmsg", SILT_TEMPLATE_MASK, "masks"},
    {"interrupts", SILT_TEMPLATE_MASK, "masks"},
    {"latency_stats", SILT_TEMPLATE_MASK, "masks"},
    {"mtrr", SILT_TEMPLATE_MASK, "masks"},
    {"acpi", SILT_TEMPLATE_EMPTY, "masks"},
    {"asound", SILT_TEMPLATE_EMPTY, "masks"},
    {"bus", SILT_TEMPLATE_EMPTY, "masks"},
    {"driver", SILT_TEMPLATE_EMPTY, "masks"},
    {"fs", SILT_TEMPLATE_EMPTY, "masks"},
    {"irq", SILT_TEMPLATE_EMPTY, "masks"},
    {"scsi", SILT_TEMPLATE_EMPTY, "masks"},
    {"kallsyms", SILT_TEMPLATE_MASK, "infoleaks"},
    {"config.gz", SILT_TEMPLATE_MASK, "infoleaks"},
    {"sched_debug", SILT_TEMPLATE_MASK, "infoleaks"},
    /* about the machine */
    {"cmdline", SILT_TEMPLATE_MASK, "infoleaks"},
    {"iomem", SILT_TEMPLATE_MASK, "infoleaks"},
    {"ioports", SILT_TEMPLATE_MASK, "infoleaks"},
    {"modules", SILT_TEMPLATE_MASK, "infoleaks"},
    {"partitions", SILT_TEMPLATE_MASK, "infoleaks"},
    {"swaps", SILT_TEMPLATE_MASK, "infoleaks"},
    /* about its activity */
    {"buddyinfo", SILT_TEMPLATE_MASK, "infoleaks"},
    {"cgroups", SILT_TEMPLATE_MASK, "infoleaks"},
    {"diskstats", SILT_TEMPLATE_MASK, "infoleaks"},
    {"locks", SILT_TEMPLATE_MASK, "infoleaks"},
    {"mdstat", SILT_TEMPLATE_MASK, "infoleaks"},
    {"pressure", SILT_TEMPLATE_EMPTY, "infoleaks"},
    {"schedstat", SILT_TEMPLATE_MASK, "infoleaks"},
    {"softirqs", SILT_TEMPLATE_MASK, "infoleaks"},
    {"vmstat", SILT_TEMPLATE_MASK, "infoleaks"},
    {"zoneinfo", SILT_TEMPLATE_MASK, "infoleaks"},
};

/* Mounts onto `to` in the current directory, which is in a mount of ours. Half the cost of cloning
 * and attaching, and there are many. */
static int put_over(const char *from, const char *to, struct silt_error *e)
{
    if (mount(from, to, NULL, MS_BIND, NULL) < 0)
        return silt_fail_errno(e, "mount over %s", to);
    return 0;
}

static int enter_mount(int fd, struct silt_error *e)
{
    return fchdir(fd) < 0 ? silt_fail_errno(e, "enter a mount") : 0;
}

static int cover(int proc, struct silt_error *e)
{
    if (enter_mount(proc, e) < 0)
        return -1;
    for (size_t i = 0; i < SILT_COUNT(proc_masks); i++) {
        const struct mask *m = &proc_masks[i];
        if (silt_without("masks") || silt_without(m->protection))
            continue;
        if (put_over(m->cover, m->path, e) < 0 && e->sys != ENOENT) /* not in this kernel */
            return -1;
    }
    return 0;
}

/* In test builds a sandbox may see the real sysfs and sysctl. */
static bool shows_all(void)
{
    return silt_without("masks") || silt_without("infoleaks");
}

static int show_sysctl(int proc, struct silt_error *e)
{
    silt_auto_fd sys = -1;
    if (silt_without("masks"))
        return 0;
    if (silt_mnt_clone(proc, "sys", &sys, e) < 0)
        return -1;
    if (silt_mnt_set(sys, MOUNT_ATTR_RDONLY, e) < 0)
        return -1;
    return silt_mnt_attach(sys, proc, "sys", e);
}

static int bind_sysctl(int real, const char *name, struct silt_error *e)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    char from[64];
    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", real, name);
    if (put_over(from, name, e) < 0)
        return -1;
    if (mount_setattr(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, &read_only, sizeof(read_only)) < 0)
        return silt_fail_errno(e, "make %s read-only", name);
    return 0;
}

/* The template's copies, plus the real files that belong to the sandbox. */
static int mount_sysctl(int proc, struct silt_error *e)
{
    static const char *const own[] = {"net", "user", "kernel/hostname", "kernel/random/uuid"};
    silt_auto_fd real = -1, sys = -1;
    if (shows_all())
        return show_sysctl(proc, e);
    real = openat(proc, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (real < 0)
        return silt_fail_errno(e, "open /proc/sys");
    if (silt_mnt_clone(AT_FDCWD, SILT_TEMPLATE_SYSCTL, &sys, e) < 0
        || silt_mnt_attach(sys, proc, "sys", e) < 0 || enter_mount(sys, e) < 0)
        return -1;
    for (size_t i = 0; i < SILT_COUNT(own); i++)
        if (bind_sysctl(real, own[i], e) < 0)
            return -1;
    return 0;
}

static int make_proc(int *ret_fd, struct silt_error *e)
{
    if (silt_without("pidns"))
        return silt_mnt_clone(AT_FDCWD, "/proc", ret_fd, e);
    return silt_mnt_make("proc", attributes(harmless), NULL, ret_fd, e);
}

static int mount_proc(int root, struct silt_error *e)
{
    silt_auto_fd at = -1, proc = -1, user = -1;
    if (silt_mnt_target(root, "proc", &at, e) < 0)
        return -1;
    if (make_proc(&proc, e) < 0)
        return -1;
    user = openat(proc, "sys/user",
                  O_PATH | O_DIRECTORY | O_CLOEXEC); /* writable, even when covered */
    if (user < 0)
        return silt_fail_errno(e, "open /proc/sys/user");
    if (silt_mnt_attach(proc, at, "", e) < 0)
        return -1;
    if (mount_sysctl(proc, e) < 0 || cover(proc, e) < 0)
        return -1;
    return limit_user(user, e);
}

/* /sys: the template's, with the network links from the sysfs that was made with the network
 * namespace. */

static int mount_links(const struct silt_launch *l, int sys, struct silt_error *e)
{
    static const char *const own[][2] = {
        {SILT_MOUNT_STAGE_SYS "/class/net", "class/net"},
        {SILT_MOUNT_STAGE_SYS "/devices/virtual/net", "devices/virtual/net"}};
    if (silt_mnt_attach(l->net->sysfs, AT_FDCWD, SILT_MOUNT_STAGE_SYS, e) < 0
        || enter_mount(sys, e) < 0)
        return -1;
    for (size_t i = 0; i < SILT_COUNT(own); i++)
        if (put_over(own[i][0], own[i][1], e) < 0)
            return -1;
    return 0;
}

static int mount_sys(const struct silt_launch *l, int root, struct silt_error *e)
{
    silt_auto_fd at = -1, copy = -1;
    int sys = l->net->sysfs;
    if (silt_mnt_target(root, "sys", &at, e) < 0)
        return -1;
    if (!shows_all()) {
        if (silt_mnt_clone(AT_FDCWD, SILT_TEMPLATE_SYS, &copy, e) < 0)
            return -1;
        sys = copy;
    }
    if (silt_mnt_attach(sys, at, "", e) < 0)
        return -1;
    if (silt_without("cgroup_ro") && silt_test_holes_show_groups(sys, e) < 0)
        return -1;
    return sys == copy ? mount_links(l, sys, e) : 0;
}

/* /dev */

static int mount_in(int dev, const char *name, const char *type, unsigned flags,
                    const struct silt_mnt_option *options, struct silt_error *e)
{
    silt_auto_fd mount = -1;
    if (silt_mnt_make(type, attributes(flags), options, &mount, e) < 0)
        return silt_because(e, "make /dev/%s", name);
    return silt_mnt_attach(mount, dev, name, e);
}

/* Everything in /dev but these four mounts comes from the template. /dev/silt belongs to silt-init:
 * pipes and files between it and its shells. */
static int mount_dev(const struct silt_launch *l, int root, struct silt_error *e)
{
    char shm[24];
    (void)snprintf(shm, sizeof(shm), "%llu", (unsigned long long)l->shm_bytes);
    const struct silt_mnt_option pts[] = {{"newinstance", NULL},
                                          {"ptmxmode", "0666"},
                                          {"mode", "0620"},
                                          {"gid", "5"},
                                          /* of the machine's kernel.pty.max, which all sandboxes
                                           * share */
                                          {"max", "64"},
                                          {NULL, NULL}};
    const struct silt_mnt_option shared[] = {
        {"source", "shm"}, {"mode", "1777"}, {"size", shm}, {NULL, NULL}};
    const struct silt_mnt_option own[] = {
        {"source", "silt"}, {"mode", "0700"}, {"size", "96m"}, {NULL, NULL}};
    silt_auto_fd at = -1, dev = -1;
    if (silt_mnt_target(root, "dev", &at, e) < 0)
        return -1;
    if (silt_mnt_clone(AT_FDCWD, SILT_TEMPLATE_DEV, &dev, e) < 0)
        return -1;
    if (silt_mnt_attach(dev, at, "", e) < 0)
        return -1;
    if (mount_in(dev, "pts", "devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, pts, e) < 0
        || mount_in(dev, "shm", "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, shared, e) < 0
        || mount_in(dev, "mqueue", "mqueue", harmless, NULL, e) < 0)
        return -1;
    return mount_in(dev, "silt", "tmpfs", harmless, own, e);
}

static int mount_usr(const struct silt_launch *l, int root, struct silt_error *e)
{
    silt_auto_fd at = -1;
    if (l->usr < 0)
        return 0;
    if (silt_mnt_target(root, "usr", &at, e) < 0)
        return -1;
    return silt_mnt_attach(l->usr, at, "", e);
}

/* If the image has something else at this path, or no directory for it, there is no resolver. */
static int mount_resolver(const struct silt_launch *l, int root, struct silt_error *e)
{
    silt_auto_fd at = -1, file = -1;
    if (l->resolver == NULL || silt_mnt_target_file(root, "etc/resolv.conf", &at, e) < 0)
        return 0;
    if (silt_mnt_clone(AT_FDCWD, l->resolver, &file, e) < 0)
        return -1;
    return silt_mnt_attach(file, at, "", e);
}

/* From here on, paths below SILT_TEMPLATE are the sandbox's own copy. */
static int own_template(const struct silt_launch *l, struct silt_error *e)
{
    return silt_without("own_dev") ? 0 : silt_mnt_attach(l->template, AT_FDCWD, SILT_TEMPLATE, e);
}

int silt_mounts_attach(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_test_holes_prepare(l->slot, e) < 0)
        return -1;
    if (silt_mnt_attach(l->root, AT_FDCWD, SILT_MOUNT_STAGE_NEW, e) < 0 || own_template(l, e) < 0)
        return -1;
    if (mount_usr(l, l->root, e) < 0)
        return -1;
    if (mount_dev(l, l->root, e) < 0)
        return -1;
    if (mount_sys(l, l->root, e) < 0)
        return -1;
    if (mount_resolver(l, l->root, e) < 0)
        return -1;
    return mount_proc(l->root, e); /* the last: it ends with limit_user */
}
