/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/layer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/test_switch.h"
#include "engine/storage/image.h"
#include "engine/core/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEW ".new-"

enum { NAME_SIZE = sizeof(NEW) + SILT_IMAGE_NAME_SIZE, NOTE_MAGIC = 0x53494c31 };

struct note {
    uint32_t magic, ids;
    uint8_t parent[SILT_DIGEST_SIZE];
};

/* ---- reading ---- */

void silt_layers_close(struct silt_layers *l)
{
    for (size_t i = 0; i < l->count; i++)
        silt_close_fd(&l->items[i].upper);
    l->count = 0;
    silt_close_fd(&l->tree);
}

static int read_note(int layer, struct note *ret, struct silt_error *e)
{
    silt_auto_fd fd = openat(layer, "note", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return silt_fail_errno(e, "open the note of a layer");
    if (read(fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret) || ret->magic != NOTE_MAGIC)
        return silt_fail(e, SILT_INTERNAL, "the note of a layer is not whole");
    return 0;
}

/* Opens one more layer; *digest becomes its parent's. */
static int open_layer(const struct silt_volumes *v, uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_layers *l, struct silt_error *e)
{
    char name[SILT_IMAGE_NAME_SIZE];
    struct note note;
    silt_image_name(digest, name);
    if (l->count == SILT_LAYERS_MAX)
        return silt_fail(e, SILT_LIMIT, "an image of more than %d layers", SILT_LAYERS_MAX);
    silt_auto_fd layer = openat(v->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return silt_fail_errno(e, "open image %.12s", name);
    if (read_note(layer, &note, e) < 0)
        return -1;
    int upper = openat(layer, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper < 0)
        return silt_fail_errno(e, "open layer %.12s", name);
    l->items[l->count++] = (struct silt_layer){.upper = upper, .ids = note.ids};
    memcpy(digest, note.parent, SILT_DIGEST_SIZE);
    return 0;
}

int silt_layers_open(const struct silt_volumes *v, int images,
                     const uint8_t digest[SILT_DIGEST_SIZE], struct silt_layers *ret,
                     struct silt_error *e)
{
    *ret = (struct silt_layers){.tree = -1};
    memcpy(ret->bottom, digest, sizeof(ret->bottom));
    while (silt_image_open(images, ret->bottom, &ret->tree, e) < 0) {
        ret->tree = -1;
        if (e->sys != ENOENT || open_layer(v, ret->bottom, ret, e) < 0) {
            silt_layers_close(ret);
            return -1;
        }
    }
    return 0;
}

/* ---- sealing ---- */

static int set_flags(int layer, uint64_t flags, struct silt_error *e)
{
    if (ioctl(layer, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) < 0)
        return silt_fail_errno(e, "set the flags of a layer");
    return 0;
}

static int snapshot(const struct silt_volumes *v, int volume, const char *name,
                    struct silt_error *e)
{
    struct btrfs_ioctl_vol_args_v2 args = {.fd = volume};
    memcpy(args.name, name, strlen(name));
    if (ioctl(v->layers, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        return silt_fail_errno(e, "take a snapshot");
    return 0;
}

int silt_layer_copy(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE], int dir,
                    const char *name, struct silt_error *e)
{
    char from[SILT_IMAGE_NAME_SIZE];
    silt_image_name(digest, from);
    silt_auto_fd layer = openat(v->layers, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return silt_fail_errno(e, "open layer %.12s", from);
    return silt_volume_snapshot(v, layer, dir, name, e);
}

int silt_layer_writer(int layer, uint32_t *ret, struct silt_error *e)
{
    struct note note;
    if (read_note(layer, &note, e) < 0)
        return -1;
    *ret = note.ids;
    return 0;
}

/* Removes overlayfs's work directory and our own state, which must not be part of the layer. */
static int strip(int layer, const struct silt_layer_seal *s, struct silt_error *e)
{
    struct note note = {.magic = NOTE_MAGIC, .ids = s->ids};
    memcpy(note.parent, s->parent, sizeof(note.parent));
    if (silt_remove(layer, "work", e) < 0 || silt_remove(layer, "state", e) < 0)
        return -1;
    silt_auto_fd fd =
        openat(layer, "note", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return silt_fail_errno(e, "make the note of a layer");
    return silt_fd_write_all(fd, (silt_slice){(const char *)&note, sizeof(note)}, e);
}

/* No one else sees the snapshot, but a guest wrote it: its links may point to other sandboxes'
 * files. */
static int open_beneath(int upper, const char *directory)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
                                      | RESOLVE_NO_MAGICLINKS};
    if (silt_without("commit_links"))
        how.resolve = 0;
    return (int)syscall(SYS_openat2, upper, directory, &how, sizeof(how));
}

/* Moves the path out of the guest's directories before deleting it. If a link or a file is on the
 * way, the path does not exist. */
static int leave_out(int layer, int upper, const char *path, struct silt_error *e)
{
    static const char aside[] = "left-out";
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    if (path[0] != '/' || strlen(path) >= sizeof(directory) || slash[1] == 0
        || strcmp(slash + 1, ".") == 0 || strcmp(slash + 1, "..") == 0)
        return silt_fail(e, SILT_PROTOCOL, "a layer is to leave out a path that is none");
    (void)snprintf(directory, sizeof(directory), ".%.*s", (int)(slash - path), path);
    silt_auto_fd in = open_beneath(upper, directory);
    if (in < 0 || renameat(in, slash + 1, layer, aside) < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR
                   ? 0
                   : silt_fail_errno(e, "leave out %s", path);
    return silt_remove(layer, aside, e);
}

static int leave_out_all(int layer, silt_slice paths, struct silt_error *e)
{
    silt_slice path;
    if (paths.len == 0)
        return 0;
    if (paths.data[paths.len - 1] != 0)
        return silt_fail(e, SILT_PROTOCOL, "paths without an end");
    silt_auto_fd upper = openat(layer, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper < 0)
        return silt_fail_errno(e, "open what was written");
    while (silt_slice_split(&paths, 0, &path))
        if (path.len > 0 && leave_out(layer, upper, path.data, e) < 0)
            return -1;
    return 0;
}

static int publish(const struct silt_volumes *v, const char *from, const char *to, bool soon,
                   struct silt_error *e)
{
    if (renameat2(v->layers, from, v->layers, to, RENAME_NOREPLACE) < 0)
        return silt_fail_errno(e, "publish layer %.12s", to);
    if (soon)
        return 0;
    /* Waits for this transaction only, not for all dirty files as syncfs would. */
    uint64_t transaction = 0;
    if (ioctl(v->layers, BTRFS_IOC_START_SYNC, &transaction) < 0
        || ioctl(v->layers, BTRFS_IOC_WAIT_SYNC, &transaction) < 0)
        return silt_fail_errno(e, "write layer %.12s to the disk", to);
    return 0;
}

static int check(const struct silt_volumes *v, int images, const struct silt_layer_seal *s,
                 struct silt_error *e)
{
    struct silt_layers below;
    if (!v->btrfs)
        return silt_fail(e, SILT_UNAVAILABLE,
                         "the pool is not on btrfs: sandboxes cannot become images");
    if (silt_layers_open(v, images, s->parent, &below, e) < 0)
        return -1;
    size_t count = below.count;
    silt_layers_close(&below);
    if (count >= SILT_LAYERS_MAX)
        return silt_fail(e, SILT_LIMIT, "an image of more than %d layers", SILT_LAYERS_MAX);
    return 0;
}

static int fill(const struct silt_volumes *v, const char *name, const struct silt_layer_seal *s,
                struct silt_error *e)
{
    silt_auto_fd layer = openat(v->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return silt_fail_errno(e, "open layer %s", name);
    if (strip(layer, s, e) < 0 || leave_out_all(layer, s->left_out, e) < 0)
        return -1;
    return set_flags(layer, BTRFS_SUBVOL_RDONLY, e);
}

int silt_layer_seal(const struct silt_volumes *v, int images, const struct silt_layer_seal *s,
                    uint64_t *ret_bytes, struct silt_error *e)
{
    char from[NAME_SIZE] = NEW, *to = from + sizeof(NEW) - 1;
    struct silt_error ignored;
    silt_image_name(s->digest, to);
    if (check(v, images, s, e) < 0 || snapshot(v, s->volume, from, e) < 0)
        return -1;
    /* not before: the snapshot has written what was dirty */
    if (silt_volume_usage(v, s->volume, ret_bytes, e) < 0 || fill(v, from, s, e) < 0
        || publish(v, from, to, s->soon, e) < 0) {
        (void)silt_layer_forget(v, s->digest, &ignored); /* published or not */
        return -1;
    }
    return 0;
}

/* A snapshot copies its source as of the end of a transaction, and records its number. What is
 * written afterwards gives the source a later generation with the commit of its transaction. */
static int read_info(int subvolume, struct btrfs_ioctl_get_subvol_info_args *ret)
{
    return ioctl(subvolume, BTRFS_IOC_GET_SUBVOL_INFO, ret) < 0 ? -1 : 0; /* it answers 1, too */
}

bool silt_layer_is_current(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE],
                           int volume)
{
    char name[SILT_IMAGE_NAME_SIZE];
    struct btrfs_ioctl_get_subvol_info_args then, now;
    silt_image_name(digest, name);
    silt_auto_fd layer = openat(v->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0 || read_info(layer, &then) < 0 || read_info(volume, &now) < 0
        || now.generation > then.otransid)
        return false;
    /* A write into a file's existing bytes is in no transaction before its data is written. */
    return syncfs(volume) == 0 && read_info(volume, &now) == 0 && now.generation <= then.otransid;
}

/* ---- removing ---- */

int silt_layer_forget(const struct silt_volumes *v, const uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_error *e)
{
    char half[NAME_SIZE] = NEW, *name = half + sizeof(NEW) - 1, gone[NAME_SIZE + 24];
    silt_image_name(digest, name);
    if (silt_remove(v->layers, half, e) < 0) /* left by a silt-priv that was killed */
        return -1;
    silt_auto_fd layer = openat(v->layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (layer < 0)
        return errno == ENOENT ? 0 : silt_fail_errno(e, "open layer %.12s", name);
    if (set_flags(layer, 0, e) < 0) /* a read-only one cannot be moved */
        return -1;
    (void)snprintf(gone, sizeof(gone), "l-%.16s-%llu", name, (unsigned long long)silt_clock_us());
    if (renameat(v->layers, name, v->trash, gone) == 0)
        return 0;
    if (errno == ENOSPC) /* a full file system only has room for deletions */
        return silt_remove(v->layers, name, e);
    return silt_fail_errno(e, "move layer %.12s to the trash", name);
}

int silt_layers_clear(const struct silt_volumes *v, struct silt_error *e)
{
    return silt_remove_all(v->layers, NEW, e);
}
