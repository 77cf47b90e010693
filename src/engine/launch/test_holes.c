/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/test_holes.h"

#ifdef SILT_UNSAFE_TESTS

#include "base/own.h"
#include "engine/core/mnt.h"
#include "base/test_switch.h"
#include "engine/launch/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { LEAKED_FD = 200 };

static int host = -1;   /* clone of the machine's root */
static int groups = -1; /* clone of the sandbox's memory group */
static int root_of_host = -1;

static int attach_clone(int root, const char *path, const char *name, struct silt_error *e)
{
    silt_auto_fd clone = -1;
    if (mkdirat(root, name, 0755) < 0)
        return silt_fail_errno(e, "make %s", name);
    if (silt_mnt_clone(AT_FDCWD, path, &clone, e) < 0)
        return -1;
    return silt_mnt_attach(clone, root, name, e);
}

int silt_test_holes_stage(int root, const char *cgroup, struct silt_error *e)
{
    root_of_host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_of_host < 0)
        return silt_fail_errno(e, "open /");
    if (silt_without("pivot") && attach_clone(root, "/", "host", e) < 0)
        return -1;
    if (silt_without("cgroup_ro") && attach_clone(root, cgroup, "groups", e) < 0)
        return -1;
    return 0;
}

int silt_test_holes_program(int init, uint32_t ids, int *ret_fd, struct silt_error *e)
{
    char path[32];
    struct stat st;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", init);
    silt_auto_fd from = open(path, O_RDONLY | O_CLOEXEC);
    silt_auto_fd copy = memfd_create("silt-init", MFD_CLOEXEC);
    if (from < 0 || copy < 0 || fstat(from, &st) < 0
        || sendfile(copy, from, NULL, (size_t)st.st_size) != st.st_size || fchmod(copy, 0755) < 0
        || fchown(copy, ids, ids) < 0)
        return silt_fail_errno(e, "copy silt-init");
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open the copy of silt-init");
    *ret_fd = fd;
    return 0;
}

int silt_test_holes_prepare(uint32_t slot, struct silt_error *e)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/groups/s%u", slot);
    if (silt_without("pivot") && silt_mnt_clone(AT_FDCWD, "/host", &host, e) < 0)
        return -1;
    if (silt_without("cgroup_ro") && silt_mnt_clone(AT_FDCWD, path, &groups, e) < 0)
        return -1;
    return 0;
}

int silt_test_holes_chroot(int root, struct silt_error *e)
{
    if (silt_mnt_attach(host, AT_FDCWD, SILT_TEMPLATE_EMPTY, e) < 0
        || silt_mnt_attach(root, host, "mnt", e) < 0)
        return -1;
    if (fchdir(host) < 0)
        return silt_fail_errno(e, "enter the machine's root");
    if (silt_mnt_pivot(e) < 0)
        return -1;
    if (chroot("/mnt") < 0 || chdir("/") < 0)
        return silt_fail_errno(e, "chroot");
    return 0;
}

int silt_test_holes_show_groups(int sysfs, struct silt_error *e)
{
    return silt_mnt_attach(groups, sysfs, "fs/cgroup", e);
}

int silt_test_holes_leak(struct silt_error *e)
{
    if (dup2(root_of_host, LEAKED_FD) < 0)
        return silt_fail_errno(e, "leak the machine's root");
    return 0;
}

#else
/* ISO C forbids an empty translation unit. */
typedef int silt_test_holes_nothing;
#endif
