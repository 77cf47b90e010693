/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch_child.h"
#include "base/fd.h"
#include "engine/caps.h"
#include "engine/child.h"
#include "engine/mnt.h"
#include "engine/rlimit.h"
#include "engine/stage.h"
#include "engine/sync.h"
#include "engine/unsafe.h"
#include "base/without.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const unsigned harmless = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

/* Harmless attributes, unless a test wants to see setuid programs work. */
static unsigned attributes(unsigned wanted)
{
    return silt_without("nnp") ? wanted & ~(unsigned)MOUNT_ATTR_NOSUID : wanted;
}

/* Through the guest's groups into those of the agents: the cgroup namespace, made on the way, then
 * begins at the guest's. On version 2 the clone itself put us where we belong. */
static int join_groups(const struct silt_launch *l, struct silt_error *e)
{
    if (l->birth->njoins == 0)
        return 0;
    if (silt_child_join(l->birth->joins, l->birth->njoins, e) < 0)
        return -1;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return silt_fail_errno(e, "make a cgroup namespace");
    return silt_child_join(l->cgroups->agents, l->cgroups->ndirs, e);
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

/* What the kernel does not know needs no limit. */
static int put_limits(int user, const struct user_limit *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (silt_fd_put(user, list[i].file, list[i].value, e) < 0 && e->sys != ENOENT)
            return -1;
    return 0;
}

/* In this user namespace and for all below it. From here on not even we make mounts: a detached one
 * has a mount namespace of its own. */
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
    const char *protection; /* the switch that takes it away */
};

static const struct mask proc_masks[] = {
    {"kcore", SILT_STAGE_MASK, "masks"},
    {"keys", SILT_STAGE_MASK, "masks"},
    {"key-users", SILT_STAGE_MASK, "masks"},
    {"timer_list", SILT_STAGE_MASK, "masks"},
    {"sysrq-trigger", SILT_STAGE_MASK, "masks"},
    {"kmsg", SILT_STAGE_MASK, "masks"},
    {"interrupts", SILT_STAGE_MASK, "masks"},
    {"latency_stats", SILT_STAGE_MASK, "masks"},
    {"mtrr", SILT_STAGE_MASK, "masks"},
    {"acpi", SILT_STAGE_EMPTY, "masks"},
    {"asound", SILT_STAGE_EMPTY, "masks"},
    {"bus", SILT_STAGE_EMPTY, "masks"},
    {"driver", SILT_STAGE_EMPTY, "masks"},
    {"fs", SILT_STAGE_EMPTY, "masks"},
    {"irq", SILT_STAGE_EMPTY, "masks"},
    {"scsi", SILT_STAGE_EMPTY, "masks"},
    {"kallsyms", SILT_STAGE_MASK, "infoleaks"},
    {"config.gz", SILT_STAGE_MASK, "infoleaks"},
    {"sched_debug", SILT_STAGE_MASK, "infoleaks"},
};

/* debugfs, tracefs and cgroupfs are not mounted here: their folders are empty. */
static const struct mask sys_masks[] = {
    {"firmware", SILT_STAGE_EMPTY, "masks"},
    {"kernel/boot_params", SILT_STAGE_EMPTY, "masks"},
    {"kernel/vmcoreinfo", SILT_STAGE_MASK, "masks"},
    {"devices/virtual/dmi", SILT_STAGE_EMPTY, "masks"},
    {"devices/virtual/powercap", SILT_STAGE_EMPTY, "masks"},
};

static int cover(int mount, const struct mask *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++) {
        silt_auto_fd with = -1;
        if (silt_without("masks") || silt_without(list[i].protection))
            continue;
        if (faccessat(mount, list[i].path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* this kernel does not have it; a clone for nothing costs 80 us to drop */
        if (silt_mnt_clone(AT_FDCWD, list[i].cover, &with, e) < 0)
            return -1;
        if (silt_mnt_attach(with, mount, list[i].path, e) < 0)
            return silt_because(e, "cover %s", list[i].path);
    }
    return 0;
}

static int make_sysctl_read_only(int proc, struct silt_error *e)
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
                  O_PATH | O_DIRECTORY | O_CLOEXEC); /* writable, also when covered */
    if (user < 0)
        return silt_fail_errno(e, "open /proc/sys/user");
    if (silt_mnt_attach(proc, at, "", e) < 0)
        return -1;
    if (make_sysctl_read_only(proc, e) < 0)
        return -1;
    if (cover(proc, proc_masks, SILT_COUNT(proc_masks), e) < 0)
        return -1;
    return limit_user(user, e);
}

/* /sys, made together with the network namespace it shows */

static int mount_sys(const struct silt_launch *l, int root, struct silt_error *e)
{
    silt_auto_fd at = -1;
    if (silt_mnt_target(root, "sys", &at, e) < 0)
        return -1;
    if (silt_mnt_attach(l->net->sysfs, at, "", e) < 0)
        return -1;
    if (silt_without("cgroup_ro") && silt_unsafe_show_groups(l->net->sysfs, e) < 0)
        return -1;
    return cover(l->net->sysfs, sys_masks, SILT_COUNT(sys_masks), e);
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

/* All of /dev but these four mounts is one read-only template that every sandbox shares. /dev/silt
 * is silt-init's own: pipes and files between it and the shells it runs. */
static int mount_dev(const struct silt_launch *l, int root, struct silt_error *e)
{
    char shm[24];
    (void)snprintf(shm, sizeof(shm), "%llu", (unsigned long long)l->shm_bytes);
    const struct silt_mnt_option pts[] = {
        {"newinstance", NULL}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"},
        {"max", "64"}, /* of the machine's kernel.pty.max, which all sandboxes share */
        {NULL, NULL}};
    const struct silt_mnt_option shared[] = {
        {"source", "shm"}, {"mode", "1777"}, {"size", shm}, {NULL, NULL}};
    const struct silt_mnt_option own[] = {
        {"source", "silt"}, {"mode", "0700"}, {"size", "96m"}, {NULL, NULL}};
    silt_auto_fd at = -1, dev = -1;
    if (silt_mnt_target(root, "dev", &at, e) < 0)
        return -1;
    if (silt_mnt_clone(AT_FDCWD, SILT_STAGE_DEV, &dev, e) < 0)
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

/* An image that has another thing in this place, or no place for it, does without names. */
static int mount_resolver(const struct silt_launch *l, int root, struct silt_error *e)
{
    silt_auto_fd at = -1, file = -1;
    if (l->resolver == NULL || silt_mnt_target_file(root, "etc/resolv.conf", &at, e) < 0)
        return 0;
    if (silt_mnt_clone(AT_FDCWD, l->resolver, &file, e) < 0)
        return -1;
    return silt_mnt_attach(file, at, "", e);
}

static int build_root(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_unsafe_prepare(l->slot, e) < 0)
        return -1;
    if (silt_mnt_attach(l->root, AT_FDCWD, SILT_STAGE_NEW, e) < 0)
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

static int enter_root(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_without("pivot"))
        return silt_unsafe_chroot(l->root, e);
    if (fchdir(l->root) < 0)
        return silt_fail_errno(e, "enter the root");
    return silt_mnt_pivot(e);
}

static int take_name(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_without("uts"))
        return 0;
    if (sethostname(l->hostname, strlen(l->hostname)) < 0)
        return silt_fail_errno(e, "set the host name");
    return 0;
}

static int open_null(struct silt_error *e)
{
    int null =
        open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW); /* above all others: closes at exec */
    if (null < 0)
        return silt_fail_errno(e, "open /dev/null");
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return silt_fail_errno(e, "set standard descriptor %d", i);
    return 0;
}

/* The freezer's `tasks` comes with each handle. */
static int join_count(const struct silt_launch *l)
{
    return l->birth->njoins > 0 ? l->birth->njoins - 1 : 0;
}

/* As in wire/agent.h. */
static int place_descriptors(const struct silt_launch *l, int *sync, int *init,
                             struct silt_error *e)
{
    struct silt_child_fds p = {.count = 0};
    silt_child_pass(&p, l->channel);
    silt_child_pass(&p, l->birth->oom);
    silt_child_pass(&p, l->birth->peak);
    silt_child_pass(&p, l->birth->pids);
    for (int i = 0; i < join_count(l); i++)
        silt_child_pass(&p, l->birth->joins[i]);
    for (int i = 0; i < l->nhandle_fds; i++)
        silt_child_pass(&p, l->handle_fds[i]);
    *init = l->init;
    if (silt_child_place(&p, SILT_AGENT_FD_CHANNEL, sync, init, e) < 0)
        return -1;
    if (silt_without("close_fds") && silt_unsafe_leak(e) < 0)
        return -1;
    return open_null(e);
}

/* Rights go last; the filter before the capabilities, which are what allows to load it without
 * no_new_privs in test builds. */
static int lock_down(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_rlimit_sandbox(e) < 0)
        return -1;
    if (!silt_without("nnp") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set no_new_privs");
    if (silt_seccomp_load(l->seccomp, e) < 0)
        return -1;
    if (silt_without("caps"))
        return 0;
    return silt_caps_keep(silt_caps_sandbox, e);
}

static int execute(const struct silt_launch *l, int init, struct silt_error *e)
{
    char name[] = "silt-init";
    char version[12], joins[12], handles[12];
    char *args[] = {name, version, joins, handles, NULL};
    char *env[] = {NULL, NULL};
#ifdef SILT_UNSAFE_TESTS
    char without[512];
    const char *list = getenv("SILT_WITHOUT");
    (void)snprintf(without, sizeof(without), "SILT_WITHOUT=%s", list != NULL ? list : "");
    env[0] = without;
#endif
    (void)snprintf(version, sizeof(version), "%d", l->cgroups->version);
    (void)snprintf(joins, sizeof(joins), "%d", join_count(l));
    (void)snprintf(handles, sizeof(handles), "%u", l->handles);
    (void)syscall(SYS_execveat, init, "", args, env, AT_EMPTY_PATH);
    return silt_fail_errno(e, "execute silt-init");
}

static int run(const struct silt_launch *l, int *sync, struct silt_error *e)
{
    int init = -1;
    if (join_groups(l, e) < 0)
        return -1;
    if (silt_sync_await(*sync, SYNC_IDS_MAPPED, e) < 0)
        return -1;
    if (silt_child_become_root(e) < 0)
        return -1;
    if (build_root(l, e) < 0)
        return -1;
    if (enter_root(l, e) < 0)
        return -1;
    if (take_name(l, e) < 0)
        return -1;
    if (place_descriptors(l, sync, &init, e) < 0)
        return -1;
    if (lock_down(l, e) < 0)
        return -1;
    return execute(l, init, e);
}

_Noreturn void silt_launch_child(const struct silt_launch *l, const int pair[2])
{
    struct silt_error e = {0};
    int sync = silt_sync_be_child(pair);
    (void)run(l, &sync, &e);
    silt_sync_fail(sync, &e);
}
