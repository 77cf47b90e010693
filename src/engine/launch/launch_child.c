/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launch/launch_child.h"
#include "base/fd.h"
#include "engine/core/caps.h"
#include "engine/core/child.h"
#include "engine/core/mnt.h"
#include "engine/launch/mounts.h"
#include "engine/core/rlimit.h"
#include "engine/core/sync.h"
#include "engine/launch/test_holes.h"
#include "base/test_switch.h"
#include "wire/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Joins the guest's groups, then the agents': the cgroup namespace, created in between, is then
 * rooted at the guest's. On v2 the clone itself has put us in place. */
static int join_groups(const struct silt_launch *l, struct silt_error *e)
{
    if (l->birth->njoins == 0)
        return 0;
    if (silt_child_join(l->birth->joins, l->birth->njoins, e) < 0)
        return -1;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return silt_fail_errno(e, "make a cgroup namespace");
    return silt_child_join(l->cgroups->agents, l->cgroups->ndirs, e);
}

static int enter_root(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_without("pivot"))
        return silt_test_holes_chroot(l->root, e);
    if (fchdir(l->root) < 0)
        return silt_fail_errno(e, "enter the root");
    return silt_mnt_pivot(e);
}

static int take_name(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_without("uts"))
        return 0;
    if (sethostname(l->hostname, strlen(l->hostname)) < 0)
        return silt_fail_errno(e, "set the host name");
    return 0;
}

static int open_null(struct silt_error *e)
{
    int null =
        open("/dev/null", O_RDWR | O_CLOEXEC | O_NOFOLLOW); /* above all others: closed at exec */
    if (null < 0)
        return silt_fail_errno(e, "open /dev/null");
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return silt_fail_errno(e, "set standard descriptor %d", i);
    return 0;
}

/* The freezer's `tasks` is part of each handle. */
static int join_count(const struct silt_launch *l)
{
    return l->birth->njoins > 0 ? l->birth->njoins - 1 : 0;
}

/* Descriptors as in wire/agent.h. */
static int place_descriptors(const struct silt_launch *l, int *sync, int *init,
                             struct silt_error *e)
{
    struct silt_child_fds p = {.count = 0};
    silt_child_pass(&p, l->channel);
    silt_child_pass(&p, l->birth->oom);
    silt_child_pass(&p, l->birth->peak);
    silt_child_pass(&p, l->birth->pids);
    for (int i = 0; i < join_count(l); i++)
        silt_child_pass(&p, l->birth->joins[i]);
    for (int i = 0; i < l->nhandle_fds; i++)
        silt_child_pass(&p, l->handle_fds[i]);
    *init = l->init;
    if (silt_child_place(&p, SILT_AGENT_FD_CHANNEL, sync, init, e) < 0)
        return -1;
    if (silt_without("close_fds") && silt_test_holes_leak(e) < 0)
        return -1;
    return open_null(e);
}

/* Privileges are dropped last; the filter before the capabilities, which allow loading it without
 * no_new_privs in test builds. */
static int lock_down(const struct silt_launch *l, struct silt_error *e)
{
    if (silt_rlimit_sandbox(e) < 0)
        return -1;
    if (!silt_without("nnp") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return silt_fail_errno(e, "set no_new_privs");
    if (silt_seccomp_load(l->seccomp, e) < 0)
        return -1;
    if (silt_without("caps"))
        return 0;
    return silt_caps_keep(silt_caps_sandbox, e);
}

static int execute(const struct silt_launch *l, int init, struct silt_error *e)
{
    char name[] = "silt-init";
    char version[12], joins[12], handles[12];
    char *args[] = {name, version, joins, handles, NULL};
    char *env[] = {NULL, NULL};
#ifdef SILT_UNSAFE_TESTS
    char without[512];
    const char *list = getenv("SILT_WITHOUT");
    (void)snprintf(without, sizeof(without), "SILT_WITHOUT=%s", list != NULL ? list : "");
    env[0] = without;
#endif
    (void)snprintf(version, sizeof(version), "%d", l->cgroups->version);
    (void)snprintf(joins, sizeof(joins), "%d", join_count(l));
    (void)snprintf(handles, sizeof(handles), "%u", l->handles);
    (void)syscall(SYS_execveat, init, "", args, env, AT_EMPTY_PATH);
    return silt_fail_errno(e, "execute silt-init");
}

static int run(const struct silt_launch *l, int *sync, struct silt_error *e)
{
    int init = -1;
    if (join_groups(l, e) < 0)
        return -1;
    if (silt_sync_await(*sync, SYNC_IDS_MAPPED, e) < 0)
        return -1;
    if (silt_child_become_root(e) < 0)
        return -1;
    if (silt_mounts_attach(l, e) < 0)
        return -1;
    if (enter_root(l, e) < 0)
        return -1;
    if (take_name(l, e) < 0)
        return -1;
    if (place_descriptors(l, sync, &init, e) < 0)
        return -1;
    if (lock_down(l, e) < 0)
        return -1;
    return execute(l, init, e);
}

_Noreturn void silt_launch_child(const struct silt_launch *l, const int pair[2])
{
    struct silt_error e = {0};
    int sync = silt_sync_be_child(pair);
    (void)run(l, &sync, &e);
    silt_sync_fail(sync, &e);
}
