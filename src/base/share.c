/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int open_reader(int fd, int *ret, struct silt_error *e)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *ret = open(path, O_RDONLY | O_CLOEXEC);
    return *ret >= 0 ? 0 : silt_fail_errno(e, "open shared memory for reading");
}

/* Mode 0600: the process that gets the read-only descriptor cannot reopen it for writing through
 * /proc. */
int silt_share_open(struct silt_share *s, size_t size, struct silt_error *e)
{
    silt_auto_fd reader = -1;
    silt_auto_fd fd = memfd_create("silt-share", MFD_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)size) < 0)
        return silt_fail_errno(e, "make shared memory");
    if (open_reader(fd, &reader, e) < 0)
        return -1;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return silt_fail_errno(e, "map shared memory");
    *s = (struct silt_share){
        .fd = silt_take_fd(&fd), .reader = silt_take_fd(&reader), .bytes = map, .size = size};
    return 0;
}

/* Truncates, so that a reader that keeps its descriptor keeps no memory of ours. */
void silt_share_close(struct silt_share *s)
{
    if (s->bytes == NULL)
        return;
    (void)munmap(s->bytes, s->size);
    if (ftruncate(s->fd, 0) < 0)
        abort();
    silt_close_fd(&s->fd);
    silt_close_fd(&s->reader);
    s->bytes = NULL;
}

int silt_share_look(int fd, silt_slice *ret, struct silt_error *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return silt_fail_errno(e, "look at shared memory");
    void *map =
        st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED)
        return silt_fail_errno(e, "map shared memory of %lld bytes", (long long)st.st_size);
    *ret = (silt_slice){map, (size_t)st.st_size};
    return 0;
}

void silt_share_forget(silt_slice *bytes)
{
    union {
        const char *in;
        void *out;
    } at = {.in = bytes->data};
    if (bytes->data != NULL)
        (void)munmap(at.out, bytes->len);
    *bytes = (silt_slice){NULL, 0};
}
