/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stage.h"
#include "base/fd.h"
#include "engine/kernels.h"
#include "engine/mnt.h"
#include "engine/unsafe.h"
#include "base/without.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

static const char *const folders[] = {
    "pool", "images",  "usr",     "proc",       "new",      "empty",
    "dev",  "dev/pts", "dev/shm", "dev/mqueue", "dev/silt", "dev/silt-kernel",
};

static const struct {
    const char *to, *name;
} links[] = {
    {"pts/ptmx", "dev/ptmx"},          {"/proc/self/fd", "dev/fd"},
    {"/proc/self/fd/0", "dev/stdin"},  {"/proc/self/fd/1", "dev/stdout"},
    {"/proc/self/fd/2", "dev/stderr"},
};

/* Where the machine's programs look for their loader; copied as they are, for silt-fetch. */
static const char *const usr_links[] = {"bin", "lib", "lib32", "lib64", "libx32", "sbin"};

static int make_nodes(int root, const struct node *list, size_t count, struct silt_error *e)
{
    for (size_t i = 0; i < count; i++)
        if (mknodat(root, list[i].name, S_IFCHR | 0666, makedev(list[i].major, list[i].minor)) < 0)
            return silt_fail_errno(e, "make node %s", list[i].name);
    return 0;
}

static int copy_usr_links(int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(usr_links); i++) {
        char from[32] = "/";
        char to[PATH_MAX];
        memcpy(from + 1, usr_links[i], strlen(usr_links[i]));
        ssize_t n = readlink(from, to, sizeof(to) - 1);
        if (n <= 0)
            continue; /* not there, or a machine without merged /usr */
        to[n] = 0;
        if (symlinkat(to, root, usr_links[i]) < 0)
            return silt_fail_errno(e, "make link %s", usr_links[i]);
    }
    return 0;
}

static int write_file(int root, const char *name, const char *text, struct silt_error *e)
{
    silt_auto_fd fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        return silt_fail_errno(e, "make file %s", name);
    return silt_fd_write_all(fd, silt_slice_of(text), e);
}

static int copy_kernels(const char *from, int root, struct silt_error *e)
{
    silt_auto_fd to = openat(root, "dev/silt-kernel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return silt_fail_errno(e, "open the interpreters' folder");
    return from != NULL ? silt_kernels_copy(from, to, e) : 0;
}

static int furnish(const struct silt_stage *s, int root, struct silt_error *e)
{
    for (size_t i = 0; i < SILT_COUNT(folders); i++)
        if (mkdirat(root, folders[i], 0755) < 0)
            return silt_fail_errno(e, "make folder %s", folders[i]);
    for (size_t i = 0; i < SILT_COUNT(links); i++)
        if (symlinkat(links[i].to, root, links[i].name) < 0)
            return silt_fail_errno(e, "make link %s", links[i].name);
    if (write_file(root, "mask", "", e) < 0 || write_file(root, "resolv.conf", s->resolver, e) < 0
        || write_file(root, "public.conf", "nameserver 1.1.1.1\nnameserver 8.8.8.8\n", e) < 0)
        return -1;
    if (make_nodes(root, nodes, SILT_COUNT(nodes), e) < 0)
        return -1;
    if (silt_without("devices") && make_nodes(root, unsafe_nodes, SILT_COUNT(unsafe_nodes), e) < 0)
        return -1;
    if (copy_kernels(s->kernels, root, e) < 0)
        return -1;
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

static int clone_parts(const struct silt_stage *s, struct parts *p, struct silt_error *e)
{
    if (clone_part(s->pool, 0, &p->pool, e) < 0)
        return -1;
    if (clone_part(s->images, 0, &p->images, e) < 0)
        return -1;
    return clone_part("/usr", MOUNT_ATTR_RDONLY, &p->usr, e);
}

/* A procfs with nothing mounted over it: the kernel lets a sandbox mount its own only where a whole
 * one is to be seen. */
static int attach_proc(int root, struct silt_error *e)
{
    silt_auto_fd proc = -1;
    if (silt_mnt_make("proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, NULL, &proc,
                      e)
        < 0)
        return -1;
    return silt_mnt_attach(proc, root, "proc", e);
}

/* The tmpfs is attached (over the pool's folder, which we hold already) before anything goes into
 * it: kernels before 6.15 do not attach to what is detached. */
static int build(const struct silt_stage *s, const struct parts *p, int root, struct silt_error *e)
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
    if (silt_unsafe_stage(root, s->cgroup, e) < 0)
        return -1;
    if (silt_mnt_attach(p->pool, root, "pool", e) < 0
        || silt_mnt_attach(p->images, root, "images", e) < 0
        || silt_mnt_attach(p->usr, root, "usr", e) < 0)
        return -1;
    return attach_proc(root, e);
}

static int enter(const struct silt_stage *s, struct parts *p, struct silt_error *e)
{
    static const struct silt_mnt_option options[] = {
        {"source", "silt"}, {"mode", "0755"}, {"size", "40m"}, {"nr_inodes", "2048"}, {NULL, NULL}};
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
    /* Not NOEXEC: an interpreter has a library among its files. Nothing else in it could be executed. */
    return silt_mnt_set(root, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, e);
}

int silt_stage_enter(const struct silt_stage *s, struct silt_error *e)
{
    struct parts parts = {.pool = -1, .images = -1, .usr = -1};
    int done = enter(s, &parts, e);
    close_parts(&parts);
    if (done < 0)
        return silt_because(e, "set the stage");
    return 0;
}
