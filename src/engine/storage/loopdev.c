/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/loopdev.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
    TRIES = 64, /* a free loop device may be taken by another process first */
    SEARCH_MAX = 4096,
};

static int open_device(long number)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/dev/loop%ld", number);
    return open(path, O_RDWR | O_CLOEXEC);
}

int silt_loopdev_find(int image)
{
    struct stat st;
    if (fstat(image, &st) < 0)
        return -1;
    for (long i = 0; i < SEARCH_MAX; i++) { /* numbers may be missing */
        silt_auto_fd loop = open_device(i);
        struct loop_info64 info;
        if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) < 0)
            continue;
        if (info.lo_device == st.st_dev && info.lo_inode == st.st_ino)
            return silt_take_fd(&loop);
    }
    return -1;
}

/* Direct I/O avoids caching the pool's pages twice; not every file system supports it. */
static int configure(int loop, int image)
{
    struct loop_config config = {
        .fd = (uint32_t)image,
        .block_size = 4096,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };
    if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    return ioctl(loop, LOOP_CONFIGURE, &config);
}

/* A discard (fstrim) would punch holes into the preallocated file. */
static void refuse_discards(int loop)
{
    struct stat st;
    char path[80];
    if (fstat(loop, &st) < 0)
        return;
    (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/discard_max_bytes",
                   major(st.st_rdev), minor(st.st_rdev));
    silt_auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "0", 1);
}

static int attach(int image, int *ret_fd, struct silt_error *e)
{
    silt_auto_fd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return silt_fail_errno(e, "open /dev/loop-control");
    for (int i = 0; i < TRIES; i++) {
        long number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return silt_fail_errno(e, "find a free loop device");
        silt_auto_fd loop = open_device(number);
        if (loop < 0)
            return silt_fail_errno(e, "open /dev/loop%ld", number);
        if (configure(loop, image) == 0) {
            *ret_fd = silt_take_fd(&loop);
            return 0;
        }
        if (errno != EBUSY)
            return silt_fail_errno(e, "give the pool file to /dev/loop%ld", number);
    }
    return silt_fail(e, SILT_UNAVAILABLE, "every free loop device was taken by others, %d times",
                     TRIES);
}

int silt_loopdev_attach(int image, int *ret_fd, struct silt_error *e)
{
    int loop = silt_loopdev_find(image); /* left by a silt-super that died */
    if (loop < 0 && attach(image, &loop, e) < 0)
        return -1;
    (void)ioctl(loop, LOOP_SET_CAPACITY); /* the file may have grown */
    refuse_discards(loop);
    *ret_fd = loop;
    return 0;
}

int silt_loopdev_resize(int loop, struct silt_error *e)
{
    if (ioctl(loop, LOOP_SET_CAPACITY) < 0)
        return silt_fail_errno(e, "tell the loop device the size of the pool file");
    return 0;
}
