/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/storage/trust.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/test_switch.h"
#include "engine/storage/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NEW_MARK ".trusted" /* only one silt-trust runs at a time */

enum { MARK_SIZE = SILT_IMAGE_NAME_SIZE + sizeof(SILT_TRUST_SUFFIX) };

static void mark_name(const uint8_t digest[SILT_DIGEST_SIZE], char ret[MARK_SIZE])
{
    silt_image_name(digest, ret);
    memcpy(ret + SILT_IMAGE_NAME_SIZE - 1, SILT_TRUST_SUFFIX, sizeof(SILT_TRUST_SUFFIX));
}

/* Accepts only a file owned by root. */
static bool read_mark(int images, const char *name, uint64_t *ret_inode)
{
    char text[24];
    struct stat st;
    struct silt_error e;
    silt_auto_fd fd = openat(images, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != 0
        || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text));
    if (n > 0 && text[n - 1] == '\n')
        n--;
    return n > 0
           && silt_slice_to_u64((silt_slice){text, (size_t)n}, 1, UINT64_MAX, ret_inode, &e) == 0;
}

int silt_trust_open(int images, const uint8_t digest[SILT_DIGEST_SIZE], int *ret_image,
                    struct silt_error *e)
{
    char name[MARK_SIZE];
    struct stat st;
    uint64_t inode;
    silt_auto_fd image = -1;
    mark_name(digest, name);
    /* In this order: while the directory is open its inode number cannot be reused, so a mark read
     * afterwards refers to it. */
    if (silt_image_open(images, digest, &image, e) < 0)
        return -1;
    if (silt_without("trust_mark")) { /* accept any tree */
        *ret_image = silt_take_fd(&image);
        return 0;
    }
    if (!read_mark(images, name, &inode))
        return silt_fail(e, SILT_DENIED, "image %.12s is not trusted", name);
    if (fstat(image, &st) < 0 || st.st_ino != inode)
        return silt_fail(e, SILT_DENIED, "image %.12s is not the one that was trusted", name);
    *ret_image = silt_take_fd(&image);
    return 0;
}

int silt_trust_end(int images, const uint8_t digest[SILT_DIGEST_SIZE], struct silt_error *e)
{
    char name[MARK_SIZE];
    mark_name(digest, name);
    if (unlinkat(images, name, 0) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "remove %s", name);
    return 0;
}

int silt_trust_mark(int images, const uint8_t digest[SILT_DIGEST_SIZE], int tree,
                    struct silt_error *e)
{
    char name[MARK_SIZE], text[24];
    struct stat st;
    mark_name(digest, name);
    if (fstat(tree, &st) < 0)
        return silt_fail_errno(e, "look at image %.12s", name);
    if (unlinkat(images, NEW_MARK, 0) < 0 && errno != ENOENT)
        return silt_fail_errno(e, "remove %s", NEW_MARK);
    silt_auto_fd fd =
        openat(images, NEW_MARK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return silt_fail_errno(e, "make %s", NEW_MARK);
    (void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)st.st_ino);
    if (silt_fd_write_all(fd, silt_slice_of(text), e) < 0)
        return -1;
    if (fsync(fd) < 0 || renameat(images, NEW_MARK, images, name) < 0)
        return silt_fail_errno(e, "make %s", name);
    return 0;
}

size_t silt_trust_list(int images, uint8_t (*ret)[SILT_DIGEST_SIZE], size_t max)
{
    size_t count = 0;
    int fd = openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        silt_close_fd(&fd);
        return 0;
    }
    for (struct dirent *d = readdir(directory); d != NULL && count < max; d = readdir(directory)) {
        size_t len = SILT_IMAGE_NAME_SIZE - 1;
        if (strlen(d->d_name) > len && strcmp(d->d_name + len, SILT_TRUST_SUFFIX) == 0
            && silt_digest_parse((silt_slice){d->d_name, len}, ret[count]))
            count++;
    }
    (void)closedir(directory);
    return count;
}
