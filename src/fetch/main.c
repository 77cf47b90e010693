/* SPDX-License-Identifier: Apache-2.0 */
/* silt-fetch: unpacks a tar from descriptor 0 into the current folder and says on descriptor 3 how
 * it went: one struct silt_fetch_result. Started by silt-priv as root of a user namespace with
 * 65,536 ids. */
#include "fetch/archive.h"
#include "fetch/cage.h"

#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

/* An image is published by renaming its folder: all of it has to be on the disk before. */
static int settle(struct silt_error *e)
{
    silt_auto_fd root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return silt_fail_errno(e, "open the output folder");
    if (fchmod(root, 0755) < 0)
        return silt_fail_errno(e, "set the mode of the output folder");
    if (syncfs(root) < 0)
        return silt_fail_errno(e, "write the image to the disk");
    return 0;
}

static int fetch(struct silt_fetch_result *ret, struct silt_error *e)
{
    if (silt_cage_enter(e) < 0)
        return silt_because(e, "enter the cage");
    if (silt_archive_unpack(SILT_CAGE_INPUT, &silt_archive_defaults, ret, e) < 0)
        return -1;
    return settle(e);
}

int main(void)
{
    static struct silt_fetch_result result;
    struct silt_error e = {0};
    result.ok = fetch(&result, &result.error) == 0;
    silt_slice bytes = {(const char *)&result, sizeof(result)};
    if (silt_fd_write_all(SILT_CAGE_RESULT, bytes, &e) < 0)
        return 2;
    return result.ok ? 0 : 1;
}
