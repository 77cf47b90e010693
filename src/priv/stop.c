/* SPDX-License-Identifier: Apache-2.0 */
#include "priv/stop.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/storage/recovery.h"
#include "priv/janitor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

enum {
    DEATH_STEP_MS = 20,   /* an ordinary death takes less than one */
    DEATH_MAX_MS = 10000, /* a process that waits for a disk or a dead server cannot be killed */
};

/* The recorded pid may have been reused. The pidfd pins one process; its uid is the first of this
 * slot's range, which no other sandbox has, so it belongs to this slot. */
int silt_priv_find_init(const struct silt_priv_helper *u, uint32_t slot, int volume, int *ret_pidfd,
                        struct silt_error *e)
{
    char path[32];
    struct stat st;
    pid_t pid = silt_first_pids_at(&u->pids, slot);
    if (pid == 0)
        pid = silt_volume_init(volume);
    silt_auto_fd pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (pidfd < 0 || stat(path, &st) < 0 || st.st_uid != silt_priv_helper_ids(u, slot))
        return silt_fail(e, SILT_GONE, "sandbox %u has no process", slot);
    *ret_pidfd = silt_take_fd(&pidfd);
    return 0;
}

static int await_death(int pidfd, int wait_ms)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int ready;
    do
        ready = poll(&p, 1, wait_ms);
    while (ready < 0 && errno == EINTR);
    return ready;
}

/* When PID 1 dies, the kernel first kills all others in its namespace. Frozen processes must be
 * thawed for that, hence the second pass over the groups. */
static int end_init(const struct silt_priv_helper *u, uint32_t slot, int pidfd,
                    struct silt_error *e)
{
    int64_t until = silt_clock_ms() + DEATH_MAX_MS;
    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
        return silt_fail_errno(e, "kill silt-init");
    while (await_death(pidfd, DEATH_STEP_MS) == 0) {
        if (silt_clock_ms() > until)
            return silt_fail(e, SILT_TIMEOUT, "sandbox %u does not die within %d ms", slot,
                             DEATH_MAX_MS);
        silt_cgroup_kill(&u->cgroups, slot);
    }
    return 0;
}

int silt_priv_end_processes(const struct silt_priv_helper *u, uint32_t slot, int volume,
                            struct silt_error *e)
{
    struct silt_error ignored;
    silt_auto_fd pidfd = -1;
    if (silt_priv_find_init(u, slot, volume, &pidfd, &ignored) == 0
        && end_init(u, slot, pidfd, e) < 0)
        return -1;
    return silt_cgroup_remove(&u->cgroups, slot, e);
}

static int end_if_there(const struct silt_priv_helper *u, uint32_t slot, struct silt_error *e)
{
    silt_auto_fd volume = -1;
    if (silt_volume_open(&u->volumes, slot, &volume, e) < 0)
        return e->code == SILT_NOT_FOUND ? silt_cgroup_remove(&u->cgroups, slot, e) : -1;
    if (silt_priv_end_processes(u, slot, volume, e) < 0)
        return -1;
    silt_first_pids_set(&u->pids, slot, 0);
    silt_volume_forget_init(volume);
    return 0;
}

int silt_priv_stop(const struct silt_priv_helper *u, uint32_t slot, struct silt_error *e)
{
    if (end_if_there(u, slot, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_DROP, slot, -1);
    return 0;
}

int silt_priv_destroy(const struct silt_priv_helper *u, uint32_t slot, struct silt_error *e)
{
    char record[SILT_RECOVERY_NAME_SIZE];
    if (end_if_there(u, slot, e) < 0)
        return -1;
    /* after its files: a record without files is not a sandbox */
    silt_recovery_slot_name(slot, record);
    if (silt_volume_discard(&u->volumes, slot, e) < 0
        || silt_recovery_remove(&u->volumes, record, e) < 0)
        return -1;
    silt_janitor_tell(u->janitor, SILT_JANITOR_SWEEP, slot, -1);
    silt_janitor_tell(u->janitor, SILT_JANITOR_DROP, slot, -1);
    return 0;
}
