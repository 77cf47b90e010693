/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of version 2: paths, values and order in a tree that no kernel fills, and what
 * needs no controller in the unified directory of a hybrid machine. */
#include "engine/core/cgroup.h"
#include "engine_tests.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char unified[] = "/sys/fs/cgroup/unified";

static bool file_says(const char *root, const char *path, const char *wanted)
{
    char full[512];
    char *text = NULL;
    size_t len;
    struct silt_error e;
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    if (silt_fd_read_file(-1, full, 4096, &text, &len, &e) < 0) {
        printf("# %s\n", e.text);
        return false;
    }
    bool same = strcmp(text, wanted) == 0;
    if (!same)
        printf("# %s says \"%s\"\n", path, text);
    free(text);
    return same;
}

static bool is_directory(const char *root, const char *path)
{
    char full[512];
    struct stat st;
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    return stat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool writes_version_2(struct world *w)
{
    char root[128], path[200];
    struct silt_cgroups c;
    struct silt_error e;
    int fds[12], nfds = 0;
    (void)snprintf(root, sizeof(root), "%s/fake", w->directory);
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
    CHECK(mkdir(root, 0755) == 0);
    silt_auto_fd mark = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(mark >= 0);
    struct silt_cgroups_config config = {.root = root,
                                         .instance = w->instance,
                                         .ids_base = w->ids_base,
                                         .ids_count = SLOTS * SILT_SLOT_IDS,
                                         .ids_images = w->ids_images};
    CHECK(silt_cgroups_open(&c, &config, &e) == 0);
    CHECK(c.version == 2);
    struct silt_priv_limits limits = {
        .memory_bytes = 100 << 20, .disk_bytes = 1 << 30, .cpu_milli = 1500, .pids = 77};
    CHECK(silt_cgroup_make(&c, 12, &limits, &e) == 0);
    (void)snprintf(path, sizeof(path), "%s/%s", root, w->instance);
    CHECK(is_directory(path, "s12/agent") && is_directory(path, "s12/guest"));
    CHECK(file_says(path, "s12/guest/memory.max", "104857600"));
    CHECK(file_says(path, "s12/guest/memory.swap.max", "0"));
    CHECK(file_says(path, "s12/guest/pids.max", "77"));
    CHECK(file_says(path, "s12/guest/cpu.max", "150000 100000"));
    CHECK(file_says(path, "priv/cgroup.procs", "0"));
    CHECK(silt_cgroup_handles(&c, 12, 2, fds, &nfds, &e) == 0);
    CHECK(nfds == 6 && is_directory(path, "s12/guest/h0") && is_directory(path, "s12/guest/h1"));
    struct silt_cgroup_birth birth;
    CHECK(silt_cgroup_birth_open(&c, 12, &birth, &e) == 0);
    CHECK(birth.into >= 0 && birth.njoins == 0 && birth.oom >= 0 && birth.peak >= 0
          && birth.pids >= 0);
    silt_cgroup_birth_close(&birth);
    for (int i = 0; i < nfds; i++)
        silt_close_fd(&fds[i]);
    silt_cgroup_kill(&c, 12);
    CHECK(file_says(path, "s12/cgroup.kill", "1"));
    return true;
}

static const char *needs_unified(struct world *w)
{
    char path[128];
    (void)w;
    (void)snprintf(path, sizeof(path), "%s/cgroup.controllers", unified);
    return access(path, F_OK) == 0 ? NULL : "no unified directory here";
}

static pid_t clone_into(int directory, int *ret_pidfd)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP | CLONE_PIDFD,
                              .pidfd = (uintptr_t)ret_pidfd,
                              .exit_signal = SIGCHLD,
                              .cgroup = (unsigned)directory};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        for (;;)
            (void)pause();
    return pid;
}

/* Whoever is in the group of a staging directory is dead when that group has been ended. */
static bool ends_stagings(const struct silt_cgroups *c)
{
    struct silt_cgroup_entry in;
    struct silt_error e;
    int pidfd = -1, status = 0;
    CHECK(silt_cgroup_fetch(c, 5, &in, &e) == 0 && in.into >= 0 && in.count == 0);
    pid_t pid = clone_into(in.into, &pidfd);
    silt_cgroup_entry_close(&in);
    CHECK(pid > 0 && silt_cgroup_fetch_end(c, 5, &e) == 0);
    CHECK(waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status)
          && WTERMSIG(status) == SIGKILL);
    CHECK(silt_cgroup_fetch_end(c, 5, &e) == 0); /* nothing there */
    return true;
}

/* Runs in a child: opening the groups moves the process itself. */
static bool use_unified(struct world *w)
{
    struct silt_cgroups c;
    struct silt_error e;
    struct silt_priv_limits limits = ordinary_limits;
    int fds[9], nfds = 0, pidfd = -1, status = 0;
    struct silt_cgroups_config config = {.root = unified,
                                         .instance = w->instance,
                                         .ids_base = w->ids_base,
                                         .ids_count = SLOTS * SILT_SLOT_IDS,
                                         .ids_images = w->ids_images};
    CHECK(silt_cgroups_open(&c, &config, &e) == 0);
    CHECK(c.version == 2);
    CHECK(silt_cgroup_make(&c, 3, &limits, &e) < 0
          && e.code == SILT_NOT_FOUND); /* no memory.max here */
    CHECK(silt_cgroup_handles(&c, 3, 3, fds, &nfds, &e) == 0 && nfds == 9);
    pid_t pid = clone_into(fds[3], &pidfd);
    CHECK(pid > 0);
    char list[64] = "";
    CHECK(pread(fds[4], list, sizeof(list) - 1, 0) > 0 && strtol(list, NULL, 10) == pid);
    CHECK(silt_cgroup_remove(&c, 2, &e) == 0); /* nothing there */
    CHECK(write(fds[5], "1", 1) == 1);         /* kill by handle */
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pid = clone_into(fds[6], &pidfd);
    CHECK(pid > 0);
    silt_cgroup_kill(&c, 3);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(silt_cgroup_remove(&c, 3, &e) == 0);
    CHECK(ends_stagings(&c));
    CHECK(silt_cgroups_remove(&c, &e) == 0);
    return true;
}

static bool works_in_unified(struct world *w)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        bool good = use_unified(w);
        if (!good)
            tell_complaint();
        _exit(good ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    CHECK(!is_directory(unified, w->instance));
    return true;
}

const struct test cgroup_tests[] = {
    {"version 2: directories and limits are written as the kernel wants them", writes_version_2,
     NULL},
    {"version 2: a child is born into its handle, or a staging directory's group, and killed by it",
     works_in_unified, needs_unified},
    {NULL, NULL, NULL},
};
