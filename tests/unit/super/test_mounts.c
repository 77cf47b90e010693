/* SPDX-License-Identifier: Apache-2.0 */
#include "super/mounts.h"
#include "base/fd.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void make_file(char *path, const char *text)
{
    silt_auto_fd fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
}

/* In a child, which loses its mounts. 2: it may not make any. */
static int read_mounted(const char *secret, const char *at)
{
    static struct silt_config config;
    struct silt_error e;
    char text[16] = "";
    (void)snprintf(config.token_file, sizeof(config.token_file), "%s", at);
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
        || mount(secret, at, NULL, MS_BIND, NULL) < 0)
        return 2;
    if (silt_mounts_leave(&config, &e) < 0)
        return 1;
    silt_auto_fd fd = open(at, O_RDONLY | O_CLOEXEC);
    return read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, "secret") == 0 ? 0 : 1;
}

TEST(a_file_of_the_settings_may_be_a_mount_itself)
{
    char secret[] = "/tmp/silt-test-secret-XXXXXX", at[] = "/tmp/silt-test-token-XXXXXX";
    int status;
    make_file(secret, "secret");
    make_file(at, "");
    pid_t pid = fork();
    if (pid == 0)
        _exit(read_mounted(secret, at));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)unlink(secret);
    (void)unlink(at);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}
