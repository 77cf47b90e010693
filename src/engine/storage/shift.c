/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/shift.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/core/caps.h"
#include "wire/priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    DEADLINE_MS = 20000, /* less than siltd waits for an answer */
    DEPTH_MAX = 1000,    /* a descriptor each */
    FILES_MAX = DEPTH_MAX + 64,
    MEMORY_MAX = 256 << 20,
    XATTR_MAX = 64 << 10,
};

/* ---- one file: `name` is below the current directory ---- */

struct ids {
    uint32_t from, to;
};

static uint32_t shifted(const struct ids *x, uint32_t id)
{
    return id >= x->from && id - x->from < SILT_SLOT_IDS ? id - x->from + x->to : id;
}

static uint32_t read_le32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write_le32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

/* A header of four bytes, then entries of a tag, permissions (two bytes each) and an id. */
static int shift_acl(const struct ids *x, const char *name, const char *xattr, struct silt_error *e)
{
    enum { HEAD = 4, ENTRY = 8, USER = 0x02, GROUP = 0x08 };
    unsigned char acl[XATTR_MAX];
    ssize_t len = lgetxattr(name, xattr, acl, sizeof(acl));
    if (len < 0)
        return errno == ENODATA || errno == EOPNOTSUPP ? 0 : silt_fail_errno(e, "read an ACL");
    bool changed = false;
    for (ssize_t at = HEAD; at + ENTRY <= len; at += ENTRY) {
        unsigned tag = acl[at] | (unsigned)acl[at + 1] << 8;
        if (tag != USER && tag != GROUP)
            continue;
        write_le32(acl + at + 4, shifted(x, read_le32(acl + at + 4)));
        changed = true;
    }
    if (changed && lsetxattr(name, xattr, acl, (size_t)len, 0) < 0)
        return silt_fail_errno(e, "write an ACL");
    return 0;
}

/* What chown removes: the set-id bits and the file capabilities. */
static int change_owner(const struct ids *x, const char *name, const struct stat *st,
                        struct silt_error *e)
{
    enum { ROOT_ID = 20, SIZE = 24 }; /* struct vfs_ns_cap_data of revision 3 */
    unsigned char caps[SIZE];
    ssize_t len = S_ISREG(st->st_mode) ? lgetxattr(name, "security.capability", caps, SIZE) : -1;
    if (fchownat(AT_FDCWD, name, shifted(x, st->st_uid), shifted(x, st->st_gid),
                 AT_SYMLINK_NOFOLLOW)
        < 0)
        return silt_fail_errno(e, "change an owner");
    if ((st->st_mode & (S_ISUID | S_ISGID)) != 0 && !S_ISLNK(st->st_mode)
        && fchmodat(AT_FDCWD, name, st->st_mode & 07777, 0) < 0)
        return silt_fail_errno(e, "keep the mode of a file");
    if (len != SIZE)
        return 0; /* none, or of a revision that a sandbox cannot write */
    write_le32(caps + ROOT_ID, shifted(x, read_le32(caps + ROOT_ID)));
    return lsetxattr(name, "security.capability", caps, SIZE, 0) < 0
               ? silt_fail_errno(e, "keep the capabilities of a file")
               : 0;
}

/* A file with several names is met again with its new owner, which changes no more. */
static int shift_one(const struct ids *x, const char *name, struct stat *st, struct silt_error *e)
{
    if (fstatat(AT_FDCWD, name, st, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "look at a file");
    bool ours = shifted(x, st->st_uid) != st->st_uid || shifted(x, st->st_gid) != st->st_gid;
    if (ours && change_owner(x, name, st, e) < 0)
        return -1;
    if (S_ISLNK(st->st_mode) || !ours)
        return 0;
    return shift_acl(x, name, "system.posix_acl_access", e) < 0
                   || (S_ISDIR(st->st_mode)
                       && shift_acl(x, name, "system.posix_acl_default", e) < 0)
               ? -1
               : 0;
}

/* ---- the walk ---- */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static DIR *open_directory(const char *name, struct silt_error *e)
{
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL || fchdir(fd) < 0)
        (void)silt_fail_errno(e, "open a directory");
    else
        return d;
    return NULL; /* the process ends */
}

/* The current directory is always that of the top of the stack. Nothing is closed on failure: the
 * process ends. */
static int walk(const struct ids *x, struct silt_error *e)
{
    static DIR *stack[DEPTH_MAX];
    size_t depth = 0;
    struct stat st;
    if (shift_one(x, ".", &st, e) < 0 || (stack[depth++] = open_directory(".", e)) == NULL)
        return -1;
    while (depth > 0) {
        errno = 0;
        const struct dirent *it = readdir(stack[depth - 1]);
        if (it == NULL && errno != 0)
            return silt_fail_errno(e, "list a directory");
        if (it == NULL) {
            (void)closedir(stack[--depth]);
            if (depth > 0 && fchdir(dirfd(stack[depth - 1])) < 0)
                return silt_fail_errno(e, "leave a directory");
            continue;
        }
        if (is_dots(it->d_name))
            continue;
        if (shift_one(x, it->d_name, &st, e) < 0)
            return -1;
        if (!S_ISDIR(st.st_mode))
            continue;
        if (depth == DEPTH_MAX)
            return silt_fail(e, SILT_LIMIT, "directories nested deeper than %d", DEPTH_MAX);
        if ((stack[depth++] = open_directory(it->d_name, e)) == NULL)
            return -1;
    }
    return 0;
}

/* ---- the process ---- */

static int set_limit(int which, rlim_t limit, struct silt_error *e)
{
    struct rlimit l = {.rlim_cur = limit, .rlim_max = limit};
    return setrlimit((__rlimit_resource_t)which, &l) < 0
               ? silt_fail_errno(e, "limit the process that shifts ids")
               : 0;
}

static int lock_down(int directory, struct silt_error *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "die with silt-priv");
    if (fchdir(directory) < 0 || chroot(".") < 0)
        return silt_fail_errno(e, "enter the layer");
    if (set_limit(RLIMIT_NOFILE, FILES_MAX, e) < 0 || set_limit(RLIMIT_FSIZE, 0, e) < 0
        || set_limit(RLIMIT_NPROC, 0, e) < 0 || set_limit(RLIMIT_CORE, 0, e) < 0)
        return -1;
#ifndef SILT_SANITIZED
    if (set_limit(RLIMIT_AS, MEMORY_MAX, e) < 0)
        return -1;
#endif
    return silt_caps_keep(silt_caps_shift, e);
}

/* It has no descriptor but the one to report on. */
static _Noreturn void be_child(int directory, const struct ids *x, int report)
{
    struct silt_error e = {0};
    int got = -1;
    if (dup2(directory, 3) == 3 && dup2(report, 4) == 4 && close_range(5, ~0U, 0) == 0)
        got = lock_down(3, &e) == 0 && close(3) == 0 ? walk(x, &e) : -1;
    else
        (void)silt_fail_errno(&e, "close descriptors");
    if (got == 0)
        e.code = SILT_OK;
    (void)!write(4, &e, sizeof(e));
    _exit(0);
}

/* Its exit is not reaped: silt-priv's workers ignore SIGCHLD. */
static int await_report(pid_t pid, int report, struct silt_error *e)
{
    struct pollfd p = {.fd = report, .events = POLLIN};
    int64_t until = silt_clock_ms() + DEADLINE_MS;
    int ready;
    do
        ready = poll(&p, 1, (int)(until - silt_clock_ms() > 0 ? until - silt_clock_ms() : 0));
    while (ready < 0 && errno == EINTR);
    struct silt_error got;
    if (ready <= 0) {
        (void)kill(pid, SIGKILL); /* not reaped by anyone while it lives */
        return silt_fail(e, SILT_TIMEOUT, "so many files do not change hands within %d s",
                         DEADLINE_MS / 1000);
    }
    if (read(report, &got, sizeof(got)) != (ssize_t)sizeof(got))
        return silt_fail(e, SILT_INTERNAL, "the process that shifts ids died");
    if (got.code == SILT_OK)
        return 0;
    got.text[sizeof(got.text) - 1] = 0;
    *e = got;
    return -1;
}

int silt_shift(int directory, uint32_t from, uint32_t to, struct silt_error *e)
{
    const struct ids x = {.from = from, .to = to};
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return silt_fail_errno(e, "make a pipe");
    silt_auto_fd report = pair[0], child = pair[1];
    /* Out of the way of the child's two. */
    silt_auto_fd high = fcntl(directory, F_DUPFD_CLOEXEC, 10);
    silt_auto_fd child_high = fcntl(child, F_DUPFD_CLOEXEC, 10);
    if (high < 0 || child_high < 0)
        return silt_fail_errno(e, "copy a descriptor");
    pid_t pid = fork();
    if (pid < 0)
        return silt_fail_errno(e, "fork");
    if (pid == 0)
        be_child(high, &x, child_high);
    silt_close_fd(&child);
    silt_close_fd(&child_high);
    return await_report(pid, report, e);
}
