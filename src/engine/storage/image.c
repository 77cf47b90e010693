/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/image.h"
#include "base/id.h"
#include "base/own.h"
#include "engine/core/remove.h"
#include "engine/storage/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { NAME_SIZE = 48, RANDOM_SIZE = 16 };

#define BEGUN ".root"
#define REPLACED ".replaced-"

void silt_image_name(const uint8_t digest[SILT_DIGEST_SIZE], char name[SILT_IMAGE_NAME_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < SILT_DIGEST_SIZE; i++) {
        *name++ = hex[digest[i] >> 4];
        *name++ = hex[digest[i] & 15];
    }
    *name = 0;
}

static void staging_name(uint32_t staging, char name[NAME_SIZE])
{
    (void)snprintf(name, NAME_SIZE, ".staging-%u", staging);
}

int silt_image_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_fd,
                    struct silt_error *e)
{
    char name[SILT_IMAGE_NAME_SIZE];
    silt_image_name(digest, name);
    int fd = openat(images, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return silt_fail_errno(e, "open image %.12s", name);
    *ret_fd = fd;
    return 0;
}

/* Other processes may use the same time and the same directory. */
static int set_aside(int images, const char *name, const char *prefix, struct silt_error *e)
{
    char gone[NAME_SIZE], some[RANDOM_SIZE + 1];
    silt_id_random(some, RANDOM_SIZE);
    (void)snprintf(gone, sizeof(gone), "%s%s", prefix, some);
    if (renameat(images, name, images, gone) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "move image directory %s out of the way", name);
    return 0;
}

static int to_trash(int images, const char *name, struct silt_error *e)
{
    return set_aside(images, name, ".trash-", e);
}

static int make_empty(int images, const char *name, uid_t owner, int *ret_fd, struct silt_error *e)
{
    if (to_trash(images, name, e) < 0)
        return -1;
    if (mkdirat(images, name, 0755) < 0)
        return silt_fail_errno(e, "make %s", name);
    silt_auto_fd fd = openat(images, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, owner, owner) < 0)
        return silt_fail_errno(e, "open %s", name);
    *ret_fd = silt_take_fd(&fd);
    return 0;
}

int silt_image_stage(int images, uint32_t staging, uid_t owner, int *ret_fd, struct silt_error *e)
{
    char name[NAME_SIZE];
    staging_name(staging, name);
    return make_empty(images, name, owner, ret_fd, e);
}

static int write_names(int images, const char *image, struct silt_error *e)
{
    silt_auto_fd directory = openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || fsync(directory) < 0)
        return silt_fail_errno(e, "write the name of image %.12s to the disk", image);
    return 0;
}

int silt_image_commit(int images, uint32_t staging, const uint8_t digest[SILT_DIGEST_SIZE],
                      struct silt_error *e)
{
    char from[NAME_SIZE], to[SILT_IMAGE_NAME_SIZE];
    staging_name(staging, from);
    silt_image_name(digest, to);
    silt_auto_fd tree = openat(images, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree < 0)
        return silt_fail_errno(e, "open %s", from);
    if (syncfs(tree) < 0) /* little is left: silt-fetch did the same before it reported */
        return silt_fail_errno(e, "write image %.12s to the disk", to);
    if (faccessat(images, to, F_OK, AT_SYMLINK_NOFOLLOW) < 0
        && silt_trust_end(images, digest, e) < 0)
        return -1; /* the trusted tree was another one */
    if (renameat2(images, from, images, to, RENAME_NOREPLACE) < 0) {
        if (errno == EEXIST)
            return to_trash(images, from, e);
        return silt_fail_errno(e, "publish image %.12s", to);
    }
    return write_names(images, to, e);
}

int silt_image_begin(int images, uid_t owner, int *ret_fd, struct silt_error *e)
{
    return make_empty(images, BEGUN, owner, ret_fd, e);
}

/* An existing image keeps its name at every moment. */
static int take_name(int images, const char *name)
{
    while (renameat2(images, BEGUN, images, name, RENAME_NOREPLACE) < 0) {
        if (errno != EEXIST)
            return -1;
        if (renameat2(images, BEGUN, images, name, RENAME_EXCHANGE) == 0)
            return 0;
        if (errno != ENOENT)
            return -1;
    }
    return 0;
}

int silt_image_publish(int images, int tree, const uint8_t digest[SILT_DIGEST_SIZE],
                       struct silt_error *e)
{
    char name[SILT_IMAGE_NAME_SIZE];
    silt_image_name(digest, name);
    if (syncfs(tree) < 0)
        return silt_fail_errno(e, "write image %.12s to the disk", name);
    if (silt_trust_end(images, digest, e) < 0)
        return -1;
    if (take_name(images, name) < 0)
        return silt_fail_errno(e, "publish image %.12s", name);
    return set_aside(images, BEGUN, REPLACED, e) < 0 ? -1 : write_names(images, name, e);
}

int silt_images_drop_begun(int images, struct silt_error *e)
{
    return to_trash(images, BEGUN, e);
}

int silt_images_drop_replaced(int images, struct silt_error *e)
{
    return silt_remove_all(images, REPLACED, e);
}

int silt_image_discard(int images, uint32_t staging, struct silt_error *e)
{
    char name[NAME_SIZE];
    staging_name(staging, name);
    return to_trash(images, name, e);
}

int silt_image_forget(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e)
{
    char name[SILT_IMAGE_NAME_SIZE];
    silt_image_name(digest, name);
    if (silt_trust_end(images, digest, e) < 0)
        return -1;
    return to_trash(images, name, e);
}

int silt_images_empty_trash(int images, struct silt_error *e)
{
    return silt_remove_all(images, ".trash-", e);
}
