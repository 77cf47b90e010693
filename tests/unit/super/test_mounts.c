/* SPDX-License-Identifier: Apache-2.0 */
#include "super/mounts.h"
#include "unit/base/unit.h"

TEST(a_mount_serves_the_paths_below_it)
{
    assert_true(silt_mounts_serves("/", "/var/lib/silt", false));
    assert_true(silt_mounts_serves("/var", "/var/lib/silt", false));
    assert_true(silt_mounts_serves("/var/lib/silt", "/var/lib/silt", false));
    assert_false(silt_mounts_serves("/var/li", "/var/lib/silt", false));
    assert_false(silt_mounts_serves("/home", "/var/lib/silt", false));
}

TEST(what_is_mounted_below_a_path_serves_it_only_as_a_whole)
{
    assert_false(silt_mounts_serves("/run/user/1000", "/run", false));
    assert_true(silt_mounts_serves("/etc/resolv.conf", "/etc", true));
    assert_false(silt_mounts_serves("/etcetera", "/etc", true));
}
