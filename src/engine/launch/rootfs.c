/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/rootfs.h"
#include "base/own.h"
#include "engine/core/mnt.h"
#include "engine/core/remove.h"
#include "engine/launch/mount_stage.h"
#include "engine/core/userns.h"
#include "base/test_switch.h"
#include "wire/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A volatile overlay leaves a mark so that its upper layer is not reused after a crash by accident.
 * We reuse it on purpose: an ephemeral sandbox has no durability guarantee. */
static int clear_volatile_mark(int volume, struct silt_error *e)
{
    silt_auto_fd work =
        openat(volume, "work/work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (work < 0)
        return errno == ENOENT ? 0 : silt_fail_errno(e, "open the overlay's work directory");
    return silt_remove(work, "incompat", e);
}

/* The lower layers of an overlay: descriptors of mounts, topmost first. */
struct lowers {
    int *fds;
    size_t count;
};

enum { OPTION_MAX = 255 /* limit of fsconfig */, OPTIONS_FIXED = 7 };

#define NAMES "/proc/self/fd"

/* Layers are named through /proc/self/fd: this works on every kernel with idmapped layers and shows
 * no path of ours in the guest's /proc/mounts. From that directory the names are so short that all
 * layers of an image fit into one option; Linux takes them one by one only since 6.5. */
static int name_lowers(const struct lowers *l, char ret[OPTION_MAX + 1], struct silt_error *e)
{
    int at = 0;
    for (size_t i = 0; i < l->count; i++) {
        at += snprintf(ret + at, OPTION_MAX + 1 - (size_t)at, "%s%d", i > 0 ? ":" : "", l->fds[i]);
        if (at > OPTION_MAX)
            return silt_fail(e, SILT_LIMIT, "%zu layers do not fit one mount", l->count);
    }
    return 0;
}

static int make_from_names(const struct silt_mnt_option *options, int *ret, struct silt_error *e)
{
    unsigned attributes = MOUNT_ATTR_NODEV;
    if (!silt_without("nnp"))
        attributes |= MOUNT_ATTR_NOSUID;
    if (chdir(NAMES) < 0)
        return silt_fail_errno(e, "enter " NAMES);
    int done = silt_mnt_make("overlay", attributes, options, ret, e);
    if (chdir("/") < 0)
        abort(); /* never continue in the wrong directory */
    return done;
}

/* `volume` is -1 for a read-only overlay. */
static int make_overlay(const struct lowers *l, int volume, bool ephemeral, int *ret,
                        struct silt_error *e)
{
    char lowerdir[OPTION_MAX + 1], upperdir[48], workdir[48];
    (void)snprintf(upperdir, sizeof(upperdir), NAMES "/%d/upper", volume);
    (void)snprintf(workdir, sizeof(workdir), NAMES "/%d/work", volume);
    if (name_lowers(l, lowerdir, e) < 0)
        return -1;
    if (volume < 0) {
        const struct silt_mnt_option alone[] = {
            {"source", "root"}, {"lowerdir", lowerdir}, {"redirect_dir", "follow"}, {NULL, NULL}};
        return make_from_names(alone, ret, e);
    }
    struct silt_mnt_option options[OPTIONS_FIXED] = {{"source", "root"},
                                                     {"lowerdir", lowerdir},
                                                     {"upperdir", upperdir},
                                                     {"workdir", workdir},
                                                     {"redirect_dir", "on"}};
    if (ephemeral)
        options[5] = (struct silt_mnt_option){"volatile", NULL};
    return make_from_names(options, ret, e);
}

/* Before Linux 6.15 the layers must be attached in our namespace while the overlay is created: each
 * on top of the previous one. */
static int make_overlay_attached(const struct lowers *l, int volume, bool ephemeral, int *ret,
                                 struct silt_error *e)
{
    size_t attached = 0;
    int done = 0;
    while (done == 0 && attached < l->count) {
        done = silt_mnt_attach(l->fds[attached], AT_FDCWD, SILT_MOUNT_STAGE_NEW, e);
        attached += done == 0;
    }
    if (done == 0)
        done = make_overlay(l, volume, ephemeral, ret, e);
    for (; attached > 0; attached--)
        if (umount2(SILT_MOUNT_STAGE_NEW, MNT_DETACH) < 0)
            return silt_fail_errno(e, "detach the layer again");
    return done;
}

static int open_userns(uint32_t inside, uint32_t outside, int *ret_fd, struct silt_error *e)
{
    struct silt_userns_map map = {.inside = inside, .outside = outside, .count = SILT_SLOT_IDS};
    return silt_userns_make(map, ret_fd, e);
}

static int mount_over(const struct silt_rootfs *r, const struct lowers *l, int *ret_mount,
                      struct silt_error *e)
{
    if (make_overlay(l, r->volume, r->ephemeral, ret_mount, e) == 0)
        return 0;
    if (e->sys != EINVAL)
        return -1;
    return make_overlay_attached(l, r->volume, r->ephemeral, ret_mount, e);
}

static int add_lower(const struct silt_rootfs *r, struct lowers *l, int directory, uint32_t ids,
                     struct silt_error *e)
{
    silt_auto_fd userns = -1;
    if (open_userns(ids, r->ids, &userns, e) < 0
        || silt_mnt_clone_as(directory, "", userns, &l->fds[l->count], e) < 0)
        return -1;
    l->count++;
    return 0;
}

static int clone_all(const struct silt_rootfs *r, struct lowers *l, struct silt_error *e)
{
    for (size_t i = 0; i < r->image->count; i++)
        if (add_lower(r, l, r->image->items[i].upper, r->image->items[i].ids, e) < 0)
            return -1;
    return add_lower(r, l, r->image->tree, r->ids_images, e);
}

/* If overlayfs cannot create its work directory, it mounts read-only and reports that only in the
 * kernel's log. */
static int check_writable(int mount, struct silt_error *e)
{
    struct statvfs s;
    if (fstatvfs(mount, &s) < 0)
        return silt_fail_errno(e, "look at the root");
    errno = EDQUOT;
    return (s.f_flag & ST_RDONLY) != 0 ? silt_fail_errno(e, "make the overlay's work directory")
                                       : 0;
}

int silt_rootfs_mount(const struct silt_rootfs *r, int *ret_mount, int later[SILT_LAYERS_MAX + 1],
                      size_t *ret_later, struct silt_error *e)
{
    struct lowers l = {.fds = later};
    if (clear_volatile_mark(r->volume, e) < 0)
        return -1;
    int done = clone_all(r, &l, e);
    if (done == 0 && mount_over(r, &l, ret_mount, e) < 0)
        done = silt_because(e, "mount the root");
    if (done == 0)
        done = check_writable(*ret_mount, e);
    *ret_later = l.count;
    return done;
}

static int view_layers(const struct silt_rootfs *r, int *ret_mount, struct silt_error *e)
{
    int fds[SILT_LAYERS_MAX + 1];
    struct lowers l = {.fds = fds};
    int done = clone_all(r, &l, e);
    if (done == 0)
        done = mount_over(r, &l, ret_mount, e);
    for (size_t i = 0; i < l.count; i++)
        silt_close_fd(&fds[i]);
    return done;
}

int silt_rootfs_view(const struct silt_layers *image, uint32_t ids_images, int *ret_mount,
                     struct silt_error *e)
{
    struct silt_rootfs r = {
        .image = image, .volume = -1, .ids = ids_images, .ids_images = ids_images};
    silt_auto_fd mount = -1;
    if (image->count > 0 ? view_layers(&r, &mount, e) < 0
                         : silt_mnt_clone(image->tree, "", &mount, e) < 0)
        return silt_because(e, "mount the image");
    if (silt_mnt_set(mount, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, e) < 0)
        return -1;
    *ret_mount = silt_take_fd(&mount);
    return 0;
}

int silt_rootfs_usr(uint32_t ids, int *ret_mount, struct silt_error *e)
{
    silt_auto_fd userns = -1;
    if (open_userns(0, ids, &userns, e) < 0)
        return -1;
    if (silt_mnt_clone_as(AT_FDCWD, SILT_MOUNT_STAGE_USR, userns, ret_mount, e) < 0)
        return silt_because(e, "lend the machine's /usr");
    return 0;
}
