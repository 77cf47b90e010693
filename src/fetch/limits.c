/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/limits.h"

#include <stdbool.h>
#include <sys/vfs.h>

static bool is_short(uint64_t available, uint64_t whole, uint64_t spare, uint64_t part)
{
    return whole > 0 && available < spare && available < whole / part;
}

int silt_limits_check_room(const struct silt_archive_limits *l, int fd, struct silt_error *e)
{
    struct statfs s;
    if (fstatfs(fd, &s) < 0)
        return silt_fail_errno(e, "look at the disk");
    uint64_t spare = l->spare / (s.f_bsize > 0 ? (uint64_t)s.f_bsize : 1);
    if (is_short(s.f_bavail, s.f_blocks, spare, l->spare_part))
        return silt_fail(e, SILT_NO_SPACE, "the disk is nearly full");
    if (is_short(s.f_ffree, s.f_files, spare,
                 l->spare_part)) /* in the worst case every file occupies one block */
        return silt_fail(e, SILT_NO_SPACE, "the disk can hold hardly any more files");
    return 0;
}
