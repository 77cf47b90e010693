/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/launch.h"
#include "unit/base/unit.h"

#include <errno.h>
#include <sys/stat.h>

TEST(a_program_that_ends_early_is_not_blamed_on_an_old_errno)
{
    static const char path[] = "/sys/devices/system/cpu/online"; /* shorter than its size says */
    struct silt_error e;
    struct stat st;
    int fd;
    if (stat(path, &st) < 0 || st.st_size < 4096)
        skip();
    errno = ENOSPC;
    assert_int_equal(silt_launch_copy_program(path, &fd, &e), -1);
    assert_int_equal(e.sys, 0);
    assert_non_null(strstr(e.text, "ended early"));
}
