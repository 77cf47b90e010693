/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/folder.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0600, FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW };

int silt_folder_open(int *ret_folder, struct silt_error *e)
{
    int fd = open(SILT_FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return silt_fail_errno(e, "open " SILT_FOLDER);
    *ret_folder = fd;
    return 0;
}

int silt_folder_admit(int folder, struct silt_error *e)
{
    struct stat st;
    if (fstat(folder, &st) == 0 && (st.st_mode & S_IXOTH) != 0)
        return 0;
    if (fchmodat(AT_FDCWD, SILT_FOLDER, 0711, 0) < 0)
        return silt_fail_errno(e, "open " SILT_FOLDER " to users");
    return 0;
}

static int give(int folder, const char *name, struct silt_owner owner, struct silt_error *e)
{
    if ((owner.uid != 0 || owner.gid != 0)
        && fchownat(folder, name, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "give away " SILT_FOLDER "%s", name);
    return 0;
}

static int open_kind(int folder, const char *name, int access, mode_t kind, struct silt_error *e)
{
    struct stat st;
    silt_auto_fd fd = openat(folder, name, access | FLAGS);
    if (fd < 0)
        return silt_fail_errno(e, "open " SILT_FOLDER "%s", name);
    if (fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) != kind)
        return silt_fail(e, SILT_CONFLICT, SILT_FOLDER "%s is not what we made", name);
    return silt_take_fd(&fd);
}

int silt_folder_make_fifo(int folder, const char *name, struct silt_owner owner, struct silt_error *e)
{
    silt_folder_remove(folder, name);
    if (mknodat(folder, name, S_IFIFO | MODE, 0) < 0)
        return silt_fail_errno(e, "create " SILT_FOLDER "%s", name);
    return give(folder, name, owner, e);
}

int silt_folder_fifo(int folder, const char *name, struct silt_owner owner, int access, int *ret_fd,
                     struct silt_error *e)
{
    if (silt_folder_make_fifo(folder, name, owner, e) < 0)
        return -1;
    return silt_folder_fifo_again(folder, name, access, ret_fd, e);
}

int silt_folder_fifo_again(int folder, const char *name, int access, int *ret_fd,
                           struct silt_error *e)
{
    int fd = open_kind(folder, name, access, S_IFIFO, e);
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}

int silt_folder_create(int folder, const char *name, struct silt_owner owner, int *ret_fd,
                       struct silt_error *e)
{
    silt_folder_remove(folder, name);
    silt_auto_fd fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | FLAGS, MODE);
    if (fd < 0)
        return silt_fail_errno(e, "create " SILT_FOLDER "%s", name);
    if (give(folder, name, owner, e) < 0)
        return -1;
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_folder_collect(int folder, const char *name, int *ret_fd, struct silt_error *e)
{
    int fd = open_kind(folder, name, O_RDWR, S_IFREG, e);
    silt_folder_remove(folder, name);
    if (fd < 0)
        return -1;
    *ret_fd = fd;
    return 0;
}

bool silt_folder_ends_with(int folder, const char *name, silt_slice tail)
{
    struct silt_error e;
    struct stat st;
    char last[64];
    silt_auto_fd fd = open_kind(folder, name, O_RDONLY, S_IFREG, &e);
    if (fd < 0 || tail.len > sizeof(last) || fstat(fd, &st) < 0 || st.st_size < (off_t)tail.len)
        return false;
    return pread(fd, last, tail.len, st.st_size - (off_t)tail.len) == (ssize_t)tail.len
           && memcmp(last, tail.data, tail.len) == 0;
}

/* A folder in the way that is not empty steps aside. */
static void push_aside(int folder, const char *name)
{
    static unsigned count;
    char aside[32];
    (void)snprintf(aside, sizeof(aside), "aside%u", count++);
    (void)renameat(folder, name, folder, aside);
}

void silt_folder_remove(int folder, const char *name)
{
    if (unlinkat(folder, name, 0) < 0 && errno == EISDIR) /* the guest plays with us */
        if (unlinkat(folder, name, AT_REMOVEDIR) < 0)
            push_aside(folder, name);
}
