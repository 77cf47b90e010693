/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shell/dev_silt.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0600, FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW };

int silt_dev_silt_open(int *ret_directory, struct silt_error *e)
{
    int fd = open(SILT_DEV_SILT, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return silt_fail_errno(e, "open " SILT_DEV_SILT);
    *ret_directory = fd;
    return 0;
}

int silt_dev_silt_admit(int directory, struct silt_error *e)
{
    struct stat st;
    if (fstat(directory, &st) == 0 && (st.st_mode & S_IXOTH) != 0)
        return 0;
    if (fchmodat(AT_FDCWD, SILT_DEV_SILT, 0711, 0) < 0)
        return silt_fail_errno(e, "open " SILT_DEV_SILT " to users");
    return 0;
}

static int give(int directory, const char *name, struct silt_owner owner, struct silt_error *e)
{
    if ((owner.uid != 0 || owner.gid != 0)
        && fchownat(directory, name, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "give away " SILT_DEV_SILT "%s", name);
    return 0;
}

static int open_kind(int directory, const char *name, int access, mode_t kind, struct silt_error *e)
{
    struct stat st;
    silt_auto_fd fd = openat(directory, name, access | FLAGS);
    if (fd < 0)
        return silt_fail_errno(e, "open " SILT_DEV_SILT "%s", name);
    if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != kind)
        return silt_fail(e, SILT_CONFLICT, SILT_DEV_SILT "%s is not what we made", name);
    return silt_take_fd(&fd);
}

int silt_dev_silt_make_fifo(int directory, const char *name, struct silt_owner owner,
                            struct silt_error *e)
{
    silt_dev_silt_remove(directory, name);
    if (mknodat(directory, name, S_IFIFO | MODE, 0) < 0)
        return silt_fail_errno(e, "create " SILT_DEV_SILT "%s", name);
    return give(directory, name, owner, e);
}

int silt_dev_silt_fifo(int directory, const char *name, struct silt_owner owner, int access,
                       int *ret_fd, struct silt_error *e)
{
    if (silt_dev_silt_make_fifo(directory, name, owner, e) < 0)
        return -1;
    return silt_dev_silt_fifo_again(directory, name, access, ret_fd, e);
}

int silt_dev_silt_fifo_again(int directory, const char *name, int access, int *ret_fd,
                             struct silt_error *e)
{
    int fd = open_kind(directory, name, access, S_IFIFO, e);
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}

int silt_dev_silt_create(int directory, const char *name, struct silt_owner owner, int *ret_fd,
                         struct silt_error *e)
{
    silt_dev_silt_remove(directory, name);
    silt_auto_fd fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | FLAGS, MODE);
    if (fd < 0)
        return silt_fail_errno(e, "create " SILT_DEV_SILT "%s", name);
    if (give(directory, name, owner, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_dev_silt_collect(int directory, const char *name, int *ret_fd, struct silt_error *e)
{
    int fd = open_kind(directory, name, O_RDWR, S_IFREG, e);
    silt_dev_silt_remove(directory, name);
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}

bool silt_dev_silt_ends_with(int directory, const char *name, silt_slice tail)
{
    struct silt_error e;
    struct stat st;
    char last[64];
    silt_auto_fd fd = open_kind(directory, name, O_RDONLY, S_IFREG, &e);
    if (fd < 0 || tail.len > sizeof(last) || fstat(fd, &st) < 0 || st.st_size < (off_t)tail.len)
        return false;
    return pread(fd, last, tail.len, st.st_size - (off_t)tail.len) == (ssize_t)tail.len
           && memcmp(last, tail.data, tail.len) == 0;
}

/* Renames a non-empty directory out of the way. */
static void push_aside(int directory, const char *name)
{
    static unsigned count;
    char aside[32];
    (void)snprintf(aside, sizeof(aside), "aside%u", count++);
    (void)renameat(directory, name, directory, aside);
}

void silt_dev_silt_remove(int directory, const char *name)
{
    if (unlinkat(directory, name, 0) < 0 && errno == EISDIR) /* the guest interferes */
        if (unlinkat(directory, name, AT_REMOVEDIR) < 0)
            push_aside(directory, name);
}
