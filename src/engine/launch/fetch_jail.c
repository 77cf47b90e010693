/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/fetch_jail.h"
#include "base/fd.h"
#include "base/own.h"
#include "engine/core/caps.h"
#include "engine/core/child.h"
#include "engine/core/mnt.h"
#include "engine/core/rlimit.h"
#include "engine/launch/mount_stage.h"
#include "engine/launch/template.h"
#include "engine/core/sync.h"
#include "engine/core/userns.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Opened before the clone. */
struct birth {
    /* detached mount of the output directory: a mount can be cloned only where its source is
     * attached */
    int out;
    struct silt_cgroup_entry group;
};

static void close_birth(struct birth *b)
{
    silt_close_fd(&b->out);
    silt_cgroup_entry_close(&b->group);
}
#define auto_birth __attribute__((cleanup(close_birth))) struct birth

/* After clone. */

static const char *const usr_links[] = {"lib", "lib32", "lib64", "libx32"};

static int copy_links(int root, struct silt_error *e)
{
    silt_auto_fd stage = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < SILT_COUNT(usr_links); i++) {
        char to[64];
        ssize_t n = readlinkat(stage, usr_links[i], to, sizeof(to) - 1);
        if (n <= 0)
            continue;
        to[n] = 0;
        if (symlinkat(to, root, usr_links[i]) < 0)
            return silt_fail_errno(e, "make link %s", usr_links[i]);
    }
    return 0;
}

static int build_root(const struct birth *b, struct silt_error *e)
{
    static const struct silt_mnt_option options[] = {
        {"mode", "0755"}, {"size", "16k"}, {NULL, NULL}};
    silt_auto_fd root = -1, usr = -1;
    if (silt_mnt_make("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, options, &root, e) < 0
        || silt_mnt_clone(AT_FDCWD, SILT_MOUNT_STAGE_USR, &usr, e) < 0
        || silt_mnt_attach(root, AT_FDCWD, SILT_MOUNT_STAGE_NEW, e) < 0)
        return -1;
    if (mkdirat(root, "usr", 0755) < 0 || mkdirat(root, "out", 0755) < 0)
        return silt_fail_errno(e, "make the cage's directories");
    if (copy_links(root, e) < 0 || silt_mnt_attach(usr, root, "usr", e) < 0
        || silt_mnt_attach(b->out, root, "out", e) < 0
        || silt_mnt_set(root, MOUNT_ATTR_RDONLY, e) < 0)
        return -1;
    if (fchdir(root) < 0)
        return silt_fail_errno(e, "enter the cage");
    if (silt_mnt_pivot(e) < 0)
        return -1;
    if (chdir("/out") < 0)
        return silt_fail_errno(e, "enter the output directory");
    return 0;
}

/* It writes no log: text from an untrusted archive must not appear in our log. */
static int place_descriptors(const struct silt_fetch_jail *c, int null, int *sync, int *program,
                             struct silt_error *e)
{
    struct silt_child_fds p = {.count = 0};
    silt_child_pass(&p, c->input);
    silt_child_pass(&p, c->output ? *c->output : null);
    silt_child_pass(&p, null);
    silt_child_pass(&p, c->result);
    *program = c->program;
    return silt_child_place(&p, STDIN_FILENO, sync, program, e);
}

static int lock_down(const struct silt_fetch_jail *c, struct silt_error *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return silt_fail_errno(e, "die with silt-priv");
    if (silt_rlimit_fetch(e) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set no_new_privs");
    if (silt_seccomp_load(c->seccomp, e) < 0)
        return -1;
    return silt_caps_keep(silt_caps_fetch, e);
}

static int run(const struct silt_fetch_jail *c, const struct birth *b, int *sync,
               struct silt_error *e)
{
    int program = -1;
    int null = open(SILT_TEMPLATE_DEV "/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return silt_fail_errno(e, "open the null device");
    if (silt_child_join(b->group.tasks, b->group.count, e) < 0)
        return -1;
    if (silt_sync_await(*sync, SYNC_IDS_MAPPED, e) < 0)
        return -1;
    if (silt_child_become_root(e) < 0)
        return -1;
    if (build_root(b, e) < 0)
        return -1;
    if (place_descriptors(c, null, sync, &program, e) < 0)
        return -1;
    if (lock_down(c, e) < 0)
        return -1;
    char name[] = "silt-fetch";
    char *args[] = {name, NULL};
    char *env[] = {NULL, NULL};
#ifdef SILT_SANITIZED
    char leaks[] = "ASAN_OPTIONS=detect_leaks=0"; /* no ptrace in the jail */
    env[0] = leaks;
#endif
    (void)syscall(SYS_execveat, program, "", args, env, AT_EMPTY_PATH);
    return silt_fail_errno(e, "execute silt-fetch");
}

static _Noreturn void be_child(const struct silt_fetch_jail *c, const struct birth *b,
                               const int pair[2])
{
    struct silt_error e = {0};
    int sync = silt_sync_be_child(pair);
    (void)run(c, b, &sync, &e);
    silt_sync_fail(sync, &e);
}

/* In the worker. */

static int start_child(const struct silt_fetch_jail *c, const struct birth *b, const int pair[2],
                       int *ret_pidfd, pid_t *ret_pid, struct silt_error *e)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
                 | CLONE_NEWNET | CLONE_PIDFD,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (b->group.into >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)b->group.into;
    }
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        return silt_fail_errno(e, "clone");
    if (pid == 0)
        be_child(c, b, pair);
    *ret_pid = (pid_t)pid;
    *ret_pidfd = pidfd;
    return 0;
}

static int open_directory(const struct silt_fetch_jail *c, int *ret, struct silt_error *e)
{
    if (!c->is_mount)
        return silt_mnt_clone(c->directory, "", ret, e);
    *ret = fcntl(c->directory, F_DUPFD_CLOEXEC, 0);
    return *ret < 0 ? silt_fail_errno(e, "duplicate a mount") : 0;
}

static int start(const struct silt_fetch_jail *c, int *ret_pidfd, struct silt_error *e)
{
    struct silt_userns_map map = {.inside = 0, .outside = c->ids, .count = SILT_SLOT_IDS};
    auto_birth birth = {.out = -1, .group = SILT_CGROUP_NO_ENTRY};
    silt_auto_fd pidfd = -1;
    int pair[2];
    pid_t pid;
    if (open_directory(c, &birth.out, e) < 0)
        return -1;
    if (c->cgroups != NULL && silt_cgroup_fetch(c->cgroups, c->group, &birth.group, e) < 0)
        return -1;
    if (silt_sync_open(pair, e) < 0)
        return -1;
    silt_auto_fd ours = pair[0], theirs = pair[1];
    if (start_child(c, &birth, pair, &pidfd, &pid, e) < 0)
        return -1;
    silt_close_fd(&theirs);
    if (silt_userns_write_maps(pid, map, e) < 0 || silt_sync_tell(ours, SYNC_IDS_MAPPED, e) < 0
        || silt_sync_await_exec(ours, pidfd, e) < 0) {
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        return -1;
    }
    *ret_pidfd = silt_take_fd(&pidfd);
    return 0;
}

int silt_fetch_jail_start(const struct silt_fetch_jail *c, int *ret_pidfd, struct silt_error *e)
{
    if (start(c, ret_pidfd, e) < 0)
        return silt_because(e, "start silt-fetch");
    return 0;
}
