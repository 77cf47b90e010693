/* SPDX-License-Identifier: Apache-2.0 */
#include "super/mounts.h"
#include "base/fd.h"
#include "base/log.h"

#include <assert.h>
#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

enum { TABLE_MAX = 4 << 20, NEEDED_MAX = 48, POINT_FIELD = 4 };

struct needed {
    char *path[NEEDED_MAX]; /* owned; without symlinks */
    bool whole[NEEDED_MAX]; /* including mounts below it */
    size_t count;
};

/* Programs, libraries, settings and devices, and mounts over parts of them. */
static const char *const system_directories[] = {"/proc", "/sys", "/dev",   "/etc", "/usr", "/bin",
                                                 "/sbin", "/lib", "/lib64", "/opt", "/nix"};

static void need(struct needed *n, const char *path, bool whole)
{
    char *real = path[0] == '/' ? realpath(path, NULL) : NULL;
    if (real == NULL)
        return; /* missing */
    assert(n->count < NEEDED_MAX);
    n->path[n->count] = real;
    n->whole[n->count++] = whole;
}

/* The file, which may be a mount itself (a container's secret), and its directory: the file may be
 * replaced by another. */
static void need_file(struct needed *n, const char *file)
{
    char copy[PATH_MAX], real[PATH_MAX];
    struct silt_error e;
    need(n, file, true);
    if (silt_slice_to_path(silt_slice_of(file), copy, &e) == 0)
        need(n, dirname(copy), false);
    if (file[0] == '/' && realpath(file, real) != NULL)
        need(n, dirname(real), false);
}

/* All of them are in one directory. */
static void need_programs(struct needed *n)
{
    char self[PATH_MAX];
    if (realpath("/proc/self/exe", self) != NULL)
        need(n, dirname(self), true);
}

static void collect(struct needed *n, const struct silt_config *c)
{
    for (size_t i = 0; i < SILT_COUNT(system_directories); i++)
        need(n, system_directories[i], true);
    need(n, "/run", false);
    need(n, c->state, true); /* a pool that the operator mounted there */
    need(n, c->images, true);
    need(n, c->run, false);
    need(n, c->cgroup, true);
    need_programs(n);
    need_file(n, "/etc/resolv.conf");
    need_file(n, c->token_file);
    need_file(n, c->preview_certificate);
    need_file(n, c->preview_key);
    need_file(n, c->images_authorities);
    need_file(n, c->engine_socket);
    if (getenv("NOTIFY_SOCKET") != NULL)
        need_file(n, getenv("NOTIFY_SOCKET"));
}

static bool is_below(const char *path, const char *directory)
{
    size_t len = strlen(directory);
    if (strcmp(directory, "/") == 0)
        return true;
    return strncmp(path, directory, len) == 0 && (path[len] == 0 || path[len] == '/');
}

bool silt_mounts_serves(const char *at, const char *path, bool whole)
{
    return is_below(path, at) || (whole && is_below(at, path));
}

static bool is_needed(const struct needed *n, const char *at)
{
    for (size_t i = 0; i < n->count; i++)
        if (silt_mounts_serves(at, n->path[i], n->whole[i]))
            return true;
    return false;
}

/* The kernel writes space, tab, newline and backslash as three octal digits. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != 0; from++) {
        if (from[0] == '\\' && from[1] != 0 && from[2] != 0 && from[3] != 0) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static bool point_of(silt_slice line, char at[PATH_MAX])
{
    silt_slice field = {0};
    struct silt_error e;
    for (int i = 0; i <= POINT_FIELD; i++)
        if (!silt_slice_split(&line, ' ', &field))
            return false;
    if (silt_slice_to_path(field, at, &e) < 0)
        return false;
    unescape(at);
    return true;
}

/* From the last line: mounts on top of or below others come after them. A mount that the kernel
 * refuses to detach does no harm. */
static void detach(char *table, size_t len, const struct needed *n)
{
    unsigned gone = 0;
    while (len > 0) {
        size_t end = len - (table[len - 1] == '\n'), begin = end;
        char at[PATH_MAX];
        while (begin > 0 && table[begin - 1] != '\n')
            begin--;
        if (point_of((silt_slice){table + begin, end - begin}, at) && !is_needed(n, at))
            gone += umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
        len = begin;
    }
    silt_log(SILT_LOG_DEBUG, "super.mounts", "detached=%u", gone);
}

int silt_mounts_leave(const struct silt_config *c, struct silt_error *e)
{
    silt_auto_free char *table = NULL;
    size_t len;
    struct needed n = {.count = 0};
    if (unshare(CLONE_NEWNS) < 0)
        return silt_fail_errno(e, "make a mount namespace");
    if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return silt_fail_errno(e, "make mounts private");
    if (chdir("/") < 0)
        return silt_fail_errno(e, "change to /");
    if (silt_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", TABLE_MAX, &table, &len, e) < 0)
        return -1;
    collect(&n, c);
    detach(table, len, &n);
    for (size_t i = 0; i < n.count; i++)
        free(n.path[i]);
    return 0;
}
