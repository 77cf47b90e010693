/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/template.h"
#include "base/fd.h"
#include "engine/launch/interpreter_files.h"
#include "engine/core/mnt.h"
#include "engine/launch/mount_stage.h"
#include "base/test_switch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
    VALUE_MAX = 4096,     /* one read of sysfs or sysctl */
    PROCESSORS_MAX = 128, /* a third of a MiB each; further ones appear only in the lists */
};

struct node {
    const char *name;
    unsigned major, minor;
};

static const struct node nodes[] = {
    {"dev/null", 1, 3},   {"dev/zero", 1, 5},    {"dev/full", 1, 7},
    {"dev/random", 1, 8}, {"dev/urandom", 1, 9}, {"dev/tty", 5, 0},
};
static const struct node unsafe_nodes[] = {
    {"dev/kmsg", 1, 11},
    {"dev/fuse", 10, 229},
    {"dev/kvm", 10, 232},
};

static const char *const directories[] = {
    "empty",
    "dev",
    "dev/pts",
    "dev/shm",
    "dev/mqueue",
    "dev/silt",
    "dev/silt-kernel",
    /* of sysfs; the two of net are the sandbox's own (engine/launch/mounts.c) */
    "sys",
    "sys/block",
    "sys/bus",
    "sys/dev",
    "sys/firmware",
    "sys/module",
    "sys/power",
    "sys/class",
    "sys/class/net",
    "sys/fs",
    "sys/fs/cgroup",
    "sys/devices",
    "sys/devices/virtual",
    "sys/devices/virtual/net",
    "sys/devices/system",
    "sys/devices/system/cpu",
    "sys/kernel",
    "sys/kernel/mm",
    "sys/kernel/mm/transparent_hugepage",
    /* of sysctl; net and user are the sandbox's own */
    "sysctl",
    "sysctl/net",
    "sysctl/user",
    "sysctl/kernel",
    "sysctl/kernel/pty",
    "sysctl/kernel/random",
    "sysctl/kernel/seccomp",
    "sysctl/kernel/yama",
    "sysctl/fs",
    "sysctl/fs/epoll",
    "sysctl/fs/inotify",
    "sysctl/fs/mqueue",
    "sysctl/vm",
    "sysctl/crypto",
};

static const struct {
    const char *to, *name;
} links[] = {
    {"pts/ptmx", "dev/ptmx"},          {"/proc/self/fd", "dev/fd"},
    {"/proc/self/fd/0", "dev/stdin"},  {"/proc/self/fd/1", "dev/stdout"},
    {"/proc/self/fd/2", "dev/stderr"},
};

/* Values that do not change with activity on the machine, and that programs are known to read.
 * Everything else is hidden. */
static const char *const sysctls[] = {
    "crypto/fips_enabled",
    "fs/aio-max-nr",
    "fs/epoll/max_user_watches",
    "fs/file-max",
    "fs/inotify/max_queued_events",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/lease-break-time",
    "fs/leases-enable",
    "fs/mount-max",
    "fs/mqueue/msg_default",
    "fs/mqueue/msg_max",
    "fs/mqueue/msgsize_default",
    "fs/mqueue/msgsize_max",
    "fs/mqueue/queues_max",
    "fs/nr_open",
    "fs/overflowgid",
    "fs/overflowuid",
    "fs/pipe-max-size",
    "fs/pipe-user-pages-hard",
    "fs/pipe-user-pages-soft",
    "fs/protected_fifos",
    "fs/protected_hardlinks",
    "fs/protected_regular",
    "fs/protected_symlinks",
    "fs/suid_dumpable",
    "kernel/arch",
    "kernel/cap_last_cap",
    "kernel/io_uring_disabled",
    "kernel/kptr_restrict",
    "kernel/msgmax",
    "kernel/msgmnb",
    "kernel/msgmni",
    "kernel/ngroups_max",
    "kernel/numa_balancing",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/overflowgid",
    "kernel/overflowuid",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/pty/max",
    "kernel/random/entropy_avail",
    "kernel/random/poolsize",
    "kernel/random/urandom_min_reseed_secs",
    "kernel/random/write_wakeup_threshold",
    "kernel/randomize_va_space",
    "kernel/seccomp/actions_avail",
    "kernel/sem",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "kernel/threads-max",
    "kernel/unprivileged_bpf_disabled",
    "kernel/version",
    "kernel/yama/ptrace_scope",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/legacy_va_layout",
    "vm/max_map_count",
    "vm/memfd_noexec",
    "vm/min_free_kbytes",
    "vm/mmap_min_addr",
    "vm/nr_hugepages",
    "vm/nr_overcommit_hugepages",
    "vm/overcommit_kbytes",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/swappiness",
    "vm/unprivileged_userfaultfd",
    "vm/vfs_cache_pressure",
    "vm/zone_reclaim_mode",
};

/* Copies, because the real directories also contain counters, such as how long a CPU slept, to the
 * microsecond. */
static const char *const facts[] = {
    "devices/system/cpu/isolated",
    "devices/system/cpu/kernel_max",
    "devices/system/cpu/offline",
    "devices/system/cpu/online",
    "devices/system/cpu/possible",
    "devices/system/cpu/present",
    "kernel/mm/transparent_hugepage/defrag",
    "kernel/mm/transparent_hugepage/enabled",
    "kernel/mm/transparent_hugepage/hpage_pmd_size",
    "kernel/mm/transparent_hugepage/shmem_enabled",
    "kernel/mm/transparent_hugepage/use_zero_page",
};

static int make_nodes(int root, const struct node *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (mknodat(root, list[i].name, S_IFCHR | 0666, makedev(list[i].major, list[i].minor)) < 0)
            return silt_fail_errno(e, "make node %s", list[i].name);
    return 0;
}

static int make_directories(int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(directories); i++)
        if (mkdirat(root, directories[i], 0755) < 0)
            return silt_fail_errno(e, "make directory %s", directories[i]);
    return 0;
}

static int make_links(int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(links); i++)
        if (symlinkat(links[i].to, root, links[i].name) < 0)
            return silt_fail_errno(e, "make link %s", links[i].name);
    return 0;
}

static int write_file(int root, const char *name, silt_slice text, struct silt_error *e)
{
    silt_auto_fd fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        return silt_fail_errno(e, "make file %s", name);
    return silt_fd_write_all(fd, text, e);
}

/* Values that the machine lacks or does not show are skipped. */
static int copy_value(int from, const char *path, int to, const char *name, struct silt_error *e)
{
    char text[VALUE_MAX];
    silt_auto_fd fd = openat(from, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    return n < 0 ? 0 : write_file(to, name, (silt_slice){text, (size_t)n}, e);
}

static int copy_values(const char *from, const char *const *list, size_t count, int root,
                       const char *name, struct silt_error *e)
{
    silt_auto_fd source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    silt_auto_fd to = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source < 0 || to < 0)
        return silt_fail_errno(e, "open %s", from);
    for (size_t i = 0; i < count; i++)
        if (copy_value(source, list[i], to, list[i], e) < 0)
            return -1;
    return 0;
}

/* Copies a directory of values and directories as in sysfs; skips everything else. */
static int copy_directory(int from, int to, const char *name, struct silt_error *e)
{
    silt_auto_fd source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return 0;
    if (mkdirat(to, name, 0755) < 0)
        return silt_fail_errno(e, "make directory %s", name);
    silt_auto_fd target = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int listed = fcntl(source, F_DUPFD_CLOEXEC, 0);
    DIR *d = listed >= 0 ? fdopendir(listed) : NULL;
    int done = target < 0 || d == NULL ? silt_fail_errno(e, "read %s", name) : 0;
    for (struct dirent *it; done == 0 && (it = readdir(d)) != NULL;) {
        if (it->d_name[0] == '.' || strcmp(it->d_name, "uevent") == 0)
            continue;
        if (it->d_type == DT_DIR)
            done = copy_directory(source, target, it->d_name, e);
        else if (it->d_type == DT_REG)
            done = copy_value(source, it->d_name, target, it->d_name, e);
    }
    if (d != NULL)
        (void)closedir(d);
    return done;
}

/* CPU topology and caches. */
static int copy_processors(int root, struct silt_error *e)
{
    silt_auto_fd from = open("/sys/devices/system/cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    silt_auto_fd to = openat(root, "sys/devices/system/cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return silt_fail_errno(e, "open /sys/devices/system/cpu");
    for (unsigned cpu = 0; cpu < PROCESSORS_MAX; cpu++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "cpu%u", cpu);
        silt_auto_fd source = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (source < 0)
            return 0;
        if (mkdirat(to, name, 0755) < 0)
            return silt_fail_errno(e, "make directory %s", name);
        silt_auto_fd target = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (target < 0 || copy_directory(source, target, "topology", e) < 0
            || copy_directory(source, target, "cache", e) < 0)
            return silt_because(e, "copy the facts of %s", name);
    }
    return 0;
}

static int copy_kernels(const char *from, int root, struct silt_error *e)
{
    silt_auto_fd to = openat(root, "dev/silt-kernel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return silt_fail_errno(e, "open the interpreters' directory");
    return from != NULL ? silt_interpreter_files_copy(from, to, e) : 0;
}

/* hostname and uuid are mount points for the sandbox's own; boot_id differs from the machine's. */
static int write_files(int root, const char *resolver, struct silt_error *e)
{
    static const char *const empty[] = {"mask", "sysctl/kernel/hostname",
                                        "sysctl/kernel/random/uuid"};
    for (size_t i = 0; i < SILT_COUNT(empty); i++)
        if (write_file(root, empty[i], (silt_slice){NULL, 0}, e) < 0)
            return -1;
    if (write_file(root, "resolv.conf", silt_slice_of(resolver), e) < 0
        || write_file(root, "public.conf",
                      silt_slice_of("nameserver 1.1.1.1\nnameserver 8.8.8.8\n"), e)
               < 0)
        return -1;
    return copy_value(AT_FDCWD, "/proc/sys/kernel/random/uuid", root,
                      "sysctl/kernel/random/boot_id", e);
}

int silt_template_build(int at, const char *kernels, const char *resolver, struct silt_error *e)
{
    if (make_directories(at, e) < 0 || make_links(at, e) < 0 || write_files(at, resolver, e) < 0)
        return -1;
    if (make_nodes(at, nodes, SILT_COUNT(nodes), e) < 0)
        return -1;
    if (silt_without("devices") && make_nodes(at, unsafe_nodes, SILT_COUNT(unsafe_nodes), e) < 0)
        return -1;
    if (copy_values("/proc/sys", sysctls, SILT_COUNT(sysctls), at, "sysctl", e) < 0
        || copy_values("/sys", facts, SILT_COUNT(facts), at, "sys", e) < 0
        || copy_processors(at, e) < 0)
        return -1;
    return copy_kernels(kernels, at, e);
}

/* Without an upper layer, overlayfs requires two lower ones: the other one is empty. */
int silt_template_copy(int *ret_mount, struct silt_error *e)
{
    static const struct silt_mnt_option options[] = {
        {"source", "silt"}, {"lowerdir", SILT_TEMPLATE ":" SILT_MOUNT_STAGE_NEW}, {NULL, NULL}};
    if (silt_mnt_make("overlay", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, options, ret_mount, e) < 0)
        return silt_because(e, "copy the template");
    return 0;
}
