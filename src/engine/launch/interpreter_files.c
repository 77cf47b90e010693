/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/interpreter_files.h"
#include "base/fd.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16 };

struct copy {
    uint64_t bytes;
    unsigned files;
};

static int copy_file(struct copy *c, int from, const char *name, int to, const struct stat *st,
                     struct silt_error *e)
{
    silt_auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    silt_auto_fd out =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444 | (st->st_mode & 0111));
    off_t left = st->st_size;
    if (in < 0 || out < 0)
        return silt_fail_errno(e, "copy %s", name);
    c->bytes += (uint64_t)left;
    if (c->bytes > SILT_INTERPRETER_FILES_BYTES_MAX)
        return silt_fail(e, SILT_LIMIT, "the interpreters are larger than %d bytes",
                         SILT_INTERPRETER_FILES_BYTES_MAX);
    while (left > 0) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n <= 0)
            return silt_fail_read(e, n, "copy %s", name);
        left -= n;
    }
    return 0;
}

static int copy_directory(struct copy *c, int from, int to, int depth, struct silt_error *e);

static int copy_item(struct copy *c, int from, const char *name, int to, int depth,
                     struct silt_error *e)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return silt_fail_errno(e, "look at %s", name);
    if (++c->files > SILT_INTERPRETER_FILES_FILES_MAX || depth > DEPTH_MAX)
        return silt_fail(e, SILT_LIMIT, "the interpreters have more than %d files",
                         SILT_INTERPRETER_FILES_FILES_MAX);
    if (S_ISREG(st.st_mode))
        return copy_file(c, from, name, to, &st, e);
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (mkdirat(to, name, 0755) < 0)
        return silt_fail_errno(e, "make directory %s", name);
    silt_auto_fd in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    silt_auto_fd out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0 || out < 0)
        return silt_fail_errno(e, "open directory %s", name);
    return copy_directory(c, in, out, depth + 1, e);
}

static int copy_directory(struct copy *c, int from, int to, int depth, struct silt_error *e)
{
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int done = 0;
    if (d == NULL)
        return silt_fail_errno(e, "read a directory");
    for (struct dirent *it; done == 0 && (it = readdir(d)) != NULL;)
        if (it->d_name[0] != '.')
            done = copy_item(c, from, it->d_name, to, depth, e);
    (void)closedir(d);
    return done;
}

int silt_interpreter_files_copy(const char *from, int to, struct silt_error *e)
{
    struct copy c = {0};
    silt_auto_fd fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return silt_fail_errno(e, "open directory %s", from);
    return copy_directory(&c, fd, to, 0, e) < 0 ? silt_because(e, "copy the interpreters") : 0;
}
