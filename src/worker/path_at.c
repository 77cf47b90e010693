/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/path_at.h"
#include "base/id.h"
#include "base/fs_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/syscall.h>

enum { LINKS_MAX = 40 }; /* as in the kernel */

void silt_path_at_fini(struct silt_path_at *p)
{
    silt_close_fd(&p->dir);
}

static void make_name(const char *prefix, char out[SILT_TEMP_SIZE])
{
    char random[11];
    silt_id_random(random, sizeof(random) - 1);
    (void)snprintf(out, SILT_TEMP_SIZE, "%s%s", prefix, random);
}

static const char temp_prefix[] = ".silt-t", draft_prefix[] = ".silt-d";

void silt_path_at_temp(char out[SILT_TEMP_SIZE])
{
    make_name(temp_prefix, out);
}

void silt_path_at_draft(char out[SILT_TEMP_SIZE])
{
    make_name(draft_prefix, out);
}

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0 && strlen(name) == SILT_TEMP_SIZE - 1;
}

bool silt_path_at_is_draft(const char *name)
{
    return has_prefix(name, draft_prefix);
}

bool silt_path_at_is_temp(const char *name)
{
    return has_prefix(name, temp_prefix) || silt_path_at_is_draft(name);
}

int silt_path_at_rename(int from_dir, const char *from, int to_dir, const char *to, bool fresh)
{
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, fresh ? RENAME_NOREPLACE : 0);
}

/* Opens the next directory of a path, creating it if missing. */
static int descend(int at, const char *name, mode_t mode)
{
    int fd = silt_open_at(at, name, O_PATH | O_DIRECTORY, 0);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return -1;
    return silt_open_at(at, name, O_PATH | O_DIRECTORY, 0);
}

int silt_path_at_make_directories(int base, const char *path, mode_t mode)
{
    char name[NAME_MAX + 1];
    silt_auto_fd at = silt_open_at(base, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0);
    while (at >= 0 && *(path += strspn(path, "/")) != 0) {
        size_t len = strcspn(path, "/");
        if (len > NAME_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, len);
        name[len] = 0;
        path += len;
        int next = descend(at, name, mode);
        silt_close_fd(&at);
        at = next;
    }
    return silt_take_fd(&at);
}

/* In another user's directory the name may have been taken by a different one. */
int silt_path_at_make_closed(int dir, const char *name)
{
    struct stat st;
    if (mkdirat(dir, name, 0700) < 0)
        return -1;
    silt_auto_fd fd = silt_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    errno = EBUSY;
    return st.st_uid == silt_fs_identity_now().uid && (st.st_mode & 077) == 0 ? silt_take_fd(&fd)
                                                                              : -1;
}

/* Cuts off the last name; the rest is the directory, "." if empty. */
static int cut_name(char *path, struct silt_path_at *p)
{
    size_t len = strlen(path), name;
    p->slash = len > 0 && path[len - 1] == '/';
    while (len > 0 && path[len - 1] == '/')
        path[--len] = 0;
    for (name = len; name > 0 && path[name - 1] != '/';)
        name--;
    const char *last = path + name;
    errno = len == 0 && !p->slash ? ENOENT : EISDIR;
    if (len == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return -1;
    errno = ENAMETOOLONG;
    if (len - name > NAME_MAX)
        return -1;
    memcpy(p->name, last, len - name + 1);
    (void)snprintf(path + name, 2, "%s", name == 0 ? "." : "");
    return 0;
}

static int enter(int base, char *path, unsigned how, struct silt_path_at *p)
{
    if (cut_name(path, p) < 0)
        return -1;
    p->dir = silt_open_at(base, path, O_PATH | O_DIRECTORY, 0);
    if (p->dir < 0 && errno == ENOENT && (how & SILT_PATH_AT_PARENTS) != 0)
        p->dir = silt_path_at_make_directories(base, path, 0777);
    if (p->dir < 0)
        return -1;
    p->st.st_mode = 0;
    if (fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    p->st.st_mode = 0;
    return errno == ENOENT ? 0 : -1;
}

/* Reads the link's target, unless it is a /proc link to something without a path. */
static int read_link(const struct silt_path_at *p, char *out)
{
    silt_auto_fd probe = silt_open_at(p->dir, p->name, O_PATH, 0);
    if (probe < 0 && errno == ELOOP)
        return -1;
    ssize_t n = readlinkat(p->dir, p->name, out, SILT_WORKER_PATH_MAX);
    if (n < 0)
        return -1;
    out[n] = 0;
    return 0;
}

static int follow(int *base, char *path, unsigned how, struct silt_path_at *p)
{
    bool slash = false;
    for (int links = 0; links < LINKS_MAX; links++) {
        if (enter(*base, path, how, p) < 0)
            return -1;
        p->slash = slash = slash || p->slash;
        if ((how & SILT_PATH_AT_FOLLOW) == 0 || !S_ISLNK(p->st.st_mode))
            return 0;
        if (read_link(p, path) < 0)
            return -1;
        silt_close_fd(base);
        *base = silt_take_fd(&p->dir);
    }
    errno = ELOOP;
    return -1;
}

int silt_path_at_find(const struct silt_task *t, const char *path, unsigned how,
                      struct silt_path_at *ret, struct silt_error *e)
{
    char rest[SILT_WORKER_PATH_MAX + 1];
    silt_auto_fd base = -1;
    ret->dir = -1;
    (void)snprintf(rest, sizeof(rest), "%s", path);
    if (path[0] != '/' && silt_task_base(t, &base, e) < 0)
        return -1;
    int from = base >= 0 ? base : AT_FDCWD;
    base = -1;
    int answer = follow(&from, rest, how, ret);
    int sys = errno;
    silt_close_fd(&from); /* AT_FDCWD is negative */
    errno = sys;
    return answer == 0 ? 0 : silt_fail_errno(e, "open %s", path);
}
