/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an image that say who its users are: whom to find, then /etc/passwd, then /etc/group,
 * with a NUL between them. */
#include "agent/spawn/user.h"
#include "base/fd.h"
#include "fuzz/fuzz.h"

#include <sys/mman.h>

static int file_of(silt_slice text)
{
    struct silt_error e;
    int fd = memfd_create("file", MFD_CLOEXEC);
    demand(fd >= 0 && silt_fd_write_all(fd, text, &e) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_user u;
    silt_slice rest = {(const char *)data, size}, who = {0}, passwd = {0}, group = {0};
    char text[128];
    struct silt_error e;
    (void)silt_slice_split(&rest, 0, &who);
    (void)silt_slice_split(&rest, 0, &passwd);
    (void)silt_slice_split(&rest, 0, &group);
    if (silt_slice_to_cstr(who, text, sizeof(text), &e) < 0)
        return 0;
    silt_auto_fd p = file_of(passwd), g = file_of(group);
    if (silt_user_find(text, p, g, &u, &e) < 0)
        return 0;
    demand(u.uid != (uid_t)-1 && u.gid != (gid_t)-1 && u.ngroups <= SILT_USER_GROUPS_MAX);
    demand(strlen(u.name) <= SILT_USER_NAME_MAX && strlen(u.home) < sizeof(u.home));
    return 0;
}
