/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/zygote.h"
#include "base/fd.h"
#include "engine/core/child.h"
#include "engine/core/mnt.h"
#include "engine/core/rlimit.h"
#include "engine/launch/mount_stage.h"
#include "engine/core/sync.h"
#include "engine/launch/template.h"
#include "wire/agent.h"
#include "wire/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Detached mounts, made before the clone: a mount can be cloned only where it is attached. */
struct parts {
    int root, usr; /* usr: -1 if the image has its own */
};

static void close_parts(struct parts *p)
{
    silt_close_fd(&p->root);
    silt_close_fd(&p->usr);
}
#define auto_parts __attribute__((cleanup(close_parts))) struct parts

static int clone_parts(int image, struct parts *p, struct silt_error *e)
{
    uint64_t attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (silt_mnt_clone(image, "", &p->root, e) < 0 || silt_mnt_set(p->root, attributes, e) < 0)
        return -1;
    if (faccessat(image, "usr/bin", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (silt_mnt_clone(AT_FDCWD, SILT_MOUNT_STAGE_USR, &p->usr, e) < 0)
        return -1;
    return silt_mnt_set(p->usr, attributes, e);
}

/* ---- after clone ---- */

static int attach(int mount, int root, const char *name, struct silt_error *e)
{
    silt_auto_fd at = -1;
    if (silt_mnt_target(root, name, &at, e) < 0)
        return -1;
    return silt_mnt_attach(mount, at, "", e);
}

static int attach_copy(const char *from, int root, const char *name, struct silt_error *e)
{
    silt_auto_fd mount = -1;
    if (silt_mnt_clone(AT_FDCWD, from, &mount, e) < 0)
        return -1;
    return attach(mount, root, name, e);
}

static int build_root(const struct parts *p, struct silt_error *e)
{
    static const struct silt_mnt_option options[] = {
        {"source", "tmp"}, {"mode", "1777"}, {"size", "16m"}, {NULL, NULL}};
    silt_auto_fd tmp = -1;
    if (silt_mnt_attach(p->root, AT_FDCWD, SILT_MOUNT_STAGE_NEW, e) < 0)
        return -1;
    if (p->usr >= 0 && attach(p->usr, p->root, "usr", e) < 0)
        return -1;
    if (attach_copy(SILT_TEMPLATE_DEV, p->root, "dev", e) < 0
        || attach_copy("/proc", p->root, "proc", e) < 0)
        return -1;
    if (silt_mnt_make("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, options,
                      &tmp, e)
            < 0
        || attach(tmp, p->root, "tmp", e) < 0)
        return -1;
    if (fchdir(p->root) < 0)
        return silt_fail_errno(e, "enter the root");
    return silt_mnt_pivot(e);
}

static int place_descriptors(int control, int *sync, struct silt_error *e)
{
    struct silt_child_fds p = {.count = 0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int program = null; /* found by name: any descriptor will do */
    if (null < 0)
        return silt_fail_errno(e, "open /dev/null");
    for (int i = 0; i < SILT_ZYGOTE_FD; i++)
        silt_child_pass(&p, null);
    silt_child_pass(&p, control);
    return silt_child_place(&p, STDIN_FILENO, sync, &program, e);
}

/* Finds `python3` as silt-init does for a context it starts itself, with the same environment:
 * children show it as their own. */
static int execute(struct silt_error *e)
{
    static const char *const names[] = {"/usr/local/sbin/python3", "/usr/local/bin/python3",
                                        "/usr/sbin/python3",       "/usr/bin/python3",
                                        "/sbin/python3",           "/bin/python3"};
    char name[] = "python3", isolated[] = "-I", kernel[] = SILT_KERNELS "/python/kernel";
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char home[] = "HOME=/root", user[] = "USER=root", logname[] = "LOGNAME=root",
         shell[] = "SHELL=/bin/bash";
    char version[] = "SANDBOX_VERSION=" SILT_VERSION;
    char *args[] = {name, isolated, kernel, NULL};
    char *env[] = {path, home, user, logname, shell, version, NULL};
    for (size_t i = 0; i < SILT_COUNT(names); i++)
        (void)execve(names[i], args, env);
    return silt_fail_errno(e, "execute python3");
}

static int run(const struct parts *p, int control, int *sync, struct silt_error *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return silt_fail_errno(e, "die with the zygote parent");
    if (silt_child_become_root(e) < 0 || build_root(p, e) < 0)
        return -1;
    if (place_descriptors(control, sync, e) < 0)
        return -1;
    if (silt_rlimit_command(e) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set no_new_privs");
    return execute(e);
}

static _Noreturn void be_child(const struct parts *p, int control, const int pair[2])
{
    struct silt_error e = {0};
    int sync = silt_sync_be_child(pair);
    (void)run(p, control, &sync, &e);
    silt_sync_fail(sync, &e);
}

/* ---- in zygote_parent ---- */

static int start(int image, int control, pid_t *ret_pid, struct silt_error *e)
{
    auto_parts parts = {.root = -1, .usr = -1};
    int pair[2], pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_PIDFD,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (clone_parts(image, &parts, e) < 0 || silt_sync_open(pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return silt_fail_errno(e, "clone");
    if (pid == 0)
        be_child(&parts, control, pair);
    silt_close_fd(&theirs);
    silt_auto_fd child = pidfd;
    if (silt_sync_await_exec(ours, child, e) < 0) {
        (void)pidfd_send_signal(child, SIGKILL, NULL, 0);
        (void)waitpid((pid_t)pid, NULL, 0);
        return -1;
    }
    *ret_pid = (pid_t)pid;
    return 0;
}

int silt_zygote_start(int image, int control, pid_t *ret_pid, struct silt_error *e)
{
    if (start(image, control, ret_pid, e) < 0)
        return silt_because(e, "start a warm Python");
    return 0;
}
