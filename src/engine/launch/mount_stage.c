/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/mount_stage.h"
#include "base/fd.h"
#include "engine/core/mnt.h"
#include "engine/launch/template.h"
#include "engine/launch/test_holes.h"
#include "base/test_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

static const char *const directories[] = {"pool", "images", "usr",     "proc",
                                          "sys",  "new",    "template"};

/* Where the machine's programs look for their loader; copied unchanged, for silt-fetch. */
static const char *const usr_links[] = {"bin", "lib", "lib32", "lib64", "libx32", "sbin"};

static int copy_usr_links(int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(usr_links); i++) {
        char from[32] = "/";
        char to[PATH_MAX];
        memcpy(from + 1, usr_links[i], strlen(usr_links[i]));
        ssize_t n = readlink(from, to, sizeof(to) - 1);
        if (n <= 0)
            continue; /* missing, or a machine without merged /usr */
        to[n] = 0;
        if (symlinkat(to, root, usr_links[i]) < 0)
            return silt_fail_errno(e, "make link %s", usr_links[i]);
    }
    return 0;
}

static int furnish(const struct silt_mount_stage *s, int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(directories); i++)
        if (mkdirat(root, directories[i], 0755) < 0)
            return silt_fail_errno(e, "make directory %s", directories[i]);
    silt_auto_fd template = openat(root, "template", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (template <0)
        return silt_fail_errno(e, "open the template's directory");
    if (silt_template_build(template, s->kernels, s->resolver, e) < 0)
        return silt_because(e, "build the template");
    return copy_usr_links(root, e);
}

struct parts {
    int pool, images, usr; /* detached clones */
};

static void close_parts(struct parts *p)
{
    silt_close_fd(&p->pool);
    silt_close_fd(&p->images);
    silt_close_fd(&p->usr);
}

static int clone_part(const char *path, uint64_t attributes, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd mount = -1;
    if (silt_mnt_clone(AT_FDCWD, path, &mount, e) < 0)
        return -1;
    if (!silt_without("nnp"))
        attributes |= MOUNT_ATTR_NOSUID;
    if (silt_mnt_set(mount, attributes | MOUNT_ATTR_NODEV, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&mount);
    return 0;
}

static int clone_parts(const struct silt_mount_stage *s, struct parts *p, struct silt_error *e)
{
    if (clone_part(s->pool, 0, &p->pool, e) < 0)
        return -1;
    if (clone_part(s->images, 0, &p->images, e) < 0)
        return -1;
    return clone_part("/usr", MOUNT_ATTR_RDONLY, &p->usr, e);
}

/* A procfs with nothing mounted over it: the kernel lets a sandbox mount its own only if a fully
 * visible one exists. */
static int attach_proc(int root, struct silt_error *e)
{
    silt_auto_fd proc = -1;
    if (silt_mnt_make("proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, NULL, &proc,
                      e)
        < 0)
        return -1;
    return silt_mnt_attach(proc, root, "proc", e);
}

/* The tmpfs is attached first (over the pool's directory, which we hold open): kernels before 6.15
 * cannot attach mounts to a detached one. */
static int build(const struct silt_mount_stage *s, const struct parts *p, int root,
                 struct silt_error *e)
{
    if (silt_mnt_attach(root, AT_FDCWD, s->pool, e) < 0)
        return -1;
    if (fchdir(root) < 0)
        return silt_fail_errno(e, "enter the stage");
    mode_t old = umask(0);
    int done = furnish(s, root, e);
    (void)umask(old);
    if (done < 0)
        return -1;
    if (silt_test_holes_stage(root, s->cgroup, e) < 0)
        return -1;
    if (silt_mnt_attach(p->pool, root, "pool", e) < 0
        || silt_mnt_attach(p->images, root, "images", e) < 0
        || silt_mnt_attach(p->usr, root, "usr", e) < 0)
        return -1;
    return attach_proc(root, e);
}

static int enter(const struct silt_mount_stage *s, struct parts *p, struct silt_error *e)
{
    static const struct silt_mnt_option options[] = {{"source", "silt"},
                                                     {"mode", "0755"},
                                                     {"size", "128m"},
                                                     {"nr_inodes", "16384"},
                                                     {NULL, NULL}};
    silt_auto_fd root = -1;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return silt_fail_errno(e, "make a mount namespace");
    if (clone_parts(s, p, e) < 0)
        return -1;
    if (silt_mnt_make("tmpfs", 0, options, &root, e) < 0)
        return -1;
    if (build(s, p, root, e) < 0)
        return -1;
    if (silt_mnt_pivot(e) < 0)
        return -1;
    /* Not NOEXEC: an interpreter's files include a shared library. Nothing else in it is
     * executable. */
    return silt_mnt_set(root, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, e);
}

int silt_mount_stage_enter(const struct silt_mount_stage *s, struct silt_error *e)
{
    struct parts parts = {.pool = -1, .images = -1, .usr = -1};
    int done = enter(s, &parts, e);
    close_parts(&parts);
    if (done < 0)
        return silt_because(e, "set the stage");
    return 0;
}
