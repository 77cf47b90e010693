/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/file/merge.h"
#include "base/own.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DIRECTORIES_OPEN = 32 };

static int move_all(int from, int to, struct silt_error *e);

static int move_directory(int from, int to, const char *name, struct silt_error *e)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    silt_auto_fd source = openat(from, name, how), target = openat(to, name, how);
    if (source < 0 || target < 0)
        return silt_fail_errno(e, "open directory %s", name);
    return move_all(source, target, e) < 0 ? silt_because(e, "%s", name) : 0;
}

static int move_one(int from, int to, const char *name, struct silt_error *e)
{
    struct stat source, target;
    if (fstatat(from, name, &source, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "look at %s", name);
    bool there = fstatat(to, name, &target, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && S_ISDIR(source.st_mode) && S_ISDIR(target.st_mode))
        return move_directory(from, to, name, e);
    if (there && S_ISDIR(source.st_mode) != S_ISDIR(target.st_mode))
        return silt_fail(e, SILT_CONFLICT, "%s is a directory on one side and none on the other",
                         name);
    if (renameat(from, name, to, name) < 0)
        return silt_fail_errno(e, "put %s in its place", name);
    return 0;
}

static int move_entries(DIR *entries, int from, int to, struct silt_error *e)
{
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && move_one(from, to, name, e) < 0)
            return -1;
    }
    return 0;
}

static int move_all(int from, int to, struct silt_error *e)
{
    int copy = fcntl(from, F_DUPFD_CLOEXEC, 0);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    if (entries == NULL) {
        silt_close_fd(&copy);
        return silt_fail_errno(e, "list");
    }
    int got = move_entries(entries, from, to, e);
    (void)closedir(entries);
    return got;
}

int silt_merge_move(const char *from, const char *to, struct silt_error *e)
{
    silt_auto_fd source = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    silt_auto_fd target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source < 0 || target < 0)
        return silt_fail_errno(e, "open directory %s", source < 0 ? from : to);
    return move_all(source, target, e) < 0 ? silt_because(e, "%s", to) : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

void silt_merge_remove(const char *directory)
{
    (void)nftw(directory, remove_one, DIRECTORIES_OPEN, FTW_DEPTH | FTW_PHYS);
}
