/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rootfs.h"
#include "base/own.h"
#include "engine/mnt.h"
#include "engine/remove.h"
#include "engine/stage.h"
#include "engine/userns.h"
#include "engine/without.h"
#include "wire/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* A mark that a volatile overlay leaves, so that nobody mounts its layer after a crash without
 * thinking. We have thought: such a sandbox was promised nothing. */
static int clear_volatile_mark(int volume, struct silt_error *e)
{
    silt_auto_fd work =
        openat(volume, "work/work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (work < 0)
        return errno == ENOENT ? 0 : silt_fail_errno(e, "open the overlay's work folder");
    return silt_remove(work, "incompat", e);
}

/* Layers are named through /proc/self/fd: works on every kernel with idmapped layers, and shows no
 * path of ours in the guest's /proc/mounts. */
static int make_overlay(int lower, int volume, bool ephemeral, int *ret, struct silt_error *e)
{
    char lowerdir[48], upperdir[48], workdir[48];
    (void)snprintf(lowerdir, sizeof(lowerdir), "/proc/self/fd/%d", lower);
    (void)snprintf(upperdir, sizeof(upperdir), "/proc/self/fd/%d/upper", volume);
    (void)snprintf(workdir, sizeof(workdir), "/proc/self/fd/%d/work", volume);
    struct silt_mnt_option options[] = {
        {"source", "root"},   {"lowerdir", lowerdir}, {"upperdir", upperdir},
        {"workdir", workdir}, {"redirect_dir", "on"}, {ephemeral ? "volatile" : NULL, NULL},
        {NULL, NULL},
    };
    unsigned attributes = MOUNT_ATTR_NODEV;
    if (!silt_without("nnp"))
        attributes |= MOUNT_ATTR_NOSUID;
    return silt_mnt_make("overlay", attributes, options, ret, e);
}

/* Before Linux 6.15 a layer must be attached in our own namespace while the overlay is made. */
static int make_overlay_attached(int lower, int volume, bool ephemeral, int *ret,
                                 struct silt_error *e)
{
    if (silt_mnt_attach(lower, AT_FDCWD, SILT_STAGE_NEW, e) < 0)
        return -1;
    int done = make_overlay(lower, volume, ephemeral, ret, e);
    if (umount2(SILT_STAGE_NEW, MNT_DETACH) < 0)
        return silt_fail_errno(e, "detach the layer again");
    return done;
}

static int open_userns(uint32_t inside, uint32_t outside, int *ret_fd, struct silt_error *e)
{
    struct silt_userns_map map = {.inside = inside, .outside = outside, .count = SILT_SLOT_IDS};
    return silt_userns_make(map, ret_fd, e);
}

static int mount_over(const struct silt_rootfs *r, int lower, int *ret_mount, struct silt_error *e)
{
    if (make_overlay(lower, r->volume, r->ephemeral, ret_mount, e) == 0)
        return 0;
    if (e->sys != EINVAL)
        return -1;
    return make_overlay_attached(lower, r->volume, r->ephemeral, ret_mount, e);
}

int silt_rootfs_mount(const struct silt_rootfs *r, int *ret_mount, int *ret_layer,
                      struct silt_error *e)
{
    silt_auto_fd userns = -1, lower = -1;
    if (clear_volatile_mark(r->volume, e) < 0)
        return -1;
    if (open_userns(r->ids_images, r->ids, &userns, e) < 0)
        return -1;
    if (silt_mnt_clone_as(r->image, "", userns, &lower, e) < 0)
        return -1;
    if (mount_over(r, lower, ret_mount, e) < 0)
        return silt_because(e, "mount the root");
    *ret_layer = silt_take_fd(&lower);
    return 0;
}

int silt_rootfs_usr(uint32_t ids, int *ret_mount, struct silt_error *e)
{
    silt_auto_fd userns = -1;
    if (open_userns(0, ids, &userns, e) < 0)
        return -1;
    if (silt_mnt_clone_as(AT_FDCWD, SILT_STAGE_USR, userns, ret_mount, e) < 0)
        return silt_because(e, "lend the machine's /usr");
    return 0;
}
