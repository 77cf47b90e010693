/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/copy.h"
#include "base/own.h"
#include "engine/core/remove.h"
#include "engine/storage/layer.h"
#include "engine/storage/shift.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define NEW ".new-"
#define LOG "log-"

enum { NAME_SIZE = 24 };

/* The snapshot is made under a name that no sandbox has, and gets the slot's when it is whole. */
static int furnish(const struct silt_volumes *v, const struct silt_copy *c, int volume,
                   struct silt_error *e)
{
    uint32_t writer;
    if (silt_layer_writer(volume, &writer, e) < 0)
        return -1;
    if (unlinkat(volume, "note", 0) < 0 || fchmod(volume, 0700) < 0
        || mkdirat(volume, "work", 0700) < 0 || mkdirat(volume, "state", 0700) < 0)
        return silt_fail_errno(e, "make the volume's directories");
    silt_auto_fd upper = openat(volume, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper < 0)
        return silt_fail_errno(e, "open the copy of a layer");
    if (writer != c->ids && silt_shift(upper, writer, c->ids, e) < 0)
        return -1;
    return silt_volume_limit(v, volume, c->disk_bytes, e);
}

static int fill(const struct silt_volumes *v, const struct silt_copy *c, const char *name,
                struct silt_error *e)
{
    if (silt_remove(v->slots, name, e) < 0 /* left by a silt-priv that was killed */
        || silt_layer_copy(v, c->digest, v->slots, name, e) < 0)
        return -1;
    silt_auto_fd volume = openat(v->slots, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (volume < 0)
        return silt_fail_errno(e, "open the copy of a layer");
    return furnish(v, c, volume, e);
}

int silt_copy_make(const struct silt_volumes *v, const struct silt_copy *c, struct silt_error *e)
{
    char name[NAME_SIZE], *to = name + sizeof(NEW) - 1;
    struct silt_error ignored;
    (void)snprintf(name, sizeof(name), NEW "%u", c->slot);
    int done = fill(v, c, name, e);
    if (done == 0 && renameat2(v->slots, name, v->slots, to, RENAME_NOREPLACE) < 0)
        done = silt_fail_errno(e, "publish the copy of a layer");
    if (done < 0)
        (void)silt_remove(v->slots, name, &ignored);
    return done;
}

/* Logs are ours: no guest sees the directory. */
static int keep_log(int from, int to, const char *name, struct silt_error *e)
{
    silt_auto_fd old = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    silt_auto_fd new = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (old < 0 || new < 0 || ioctl(new, FICLONE, old) < 0)
        return silt_fail_errno(e, "keep %s", name);
    return 0;
}

/* Takes from. */
static int keep_logs(int from, int to, struct silt_error *e)
{
    DIR *d = fdopendir(from);
    int done = 0;
    if (d == NULL) {
        silt_close_fd(&from);
        return silt_fail_errno(e, "list the logs");
    }
    for (struct dirent *it = readdir(d); it != NULL && done == 0; it = readdir(d))
        if (strncmp(it->d_name, LOG, sizeof(LOG) - 1) == 0)
            done = keep_log(dirfd(d), to, it->d_name, e);
    (void)closedir(d);
    return done;
}

static int keep_state(const struct silt_volumes *v, const struct silt_copy *c, const char *name,
                      struct silt_error *e)
{
    silt_auto_fd old = -1;
    if (silt_volume_open(v, c->slot, &old, e) < 0)
        return -1;
    silt_auto_fd volume = openat(v->slots, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    silt_auto_fd to = openat(volume, "state", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int from = openat(old, "state", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from >= 0 && to >= 0)
        return keep_logs(from, to, e);
    silt_close_fd(&from);
    return silt_fail_errno(e, "open the logs");
}

int silt_copy_replace(const struct silt_volumes *v, const struct silt_copy *c, struct silt_error *e)
{
    char name[NAME_SIZE], *to = name + sizeof(NEW) - 1;
    struct silt_error ignored;
    (void)snprintf(name, sizeof(name), NEW "%u", c->slot);
    int done = fill(v, c, name, e);
    if (done == 0)
        done = keep_state(v, c, name, e);
    if (done == 0 && renameat2(v->slots, name, v->slots, to, RENAME_EXCHANGE) < 0)
        done = silt_fail_errno(e, "replace volume %u", c->slot);
    if (done < 0)
        (void)silt_remove(v->slots, name, &ignored);
    else /* what cannot be moved now is removed at the next start */
        (void)silt_volume_discard_as(v, name, c->slot, &ignored);
    return done;
}

int silt_copies_clear(const struct silt_volumes *v, struct silt_error *e)
{
    return silt_remove_all(v->slots, NEW, e);
}
