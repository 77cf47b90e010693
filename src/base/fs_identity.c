/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs_identity.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

struct silt_fs_identity silt_fs_identity_now(void)
{
    return (struct silt_fs_identity){(uid_t)syscall(SYS_setfsuid, -1),
                                     (gid_t)syscall(SYS_setfsgid, -1)};
}

/* Neither call reports failure, so the result is read back. */
static bool set(struct silt_fs_identity m)
{
    (void)syscall(SYS_setfsgid, m.gid);
    (void)syscall(SYS_setfsuid, m.uid);
    struct silt_fs_identity now = silt_fs_identity_now();
    return now.uid == m.uid && now.gid == m.gid;
}

/* Changing the uid drops the file capabilities: raise them again. */
int silt_fs_identity_be(struct silt_fs_identity m, struct silt_error *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    struct silt_fs_identity old = silt_fs_identity_now();
    if (syscall(SYS_capget, &head, caps) < 0)
        return silt_fail_errno(e, "look at capabilities");
    bool done = set(m);
    if (!done)
        (void)set(old);
    if (syscall(SYS_capset, &head, caps) < 0)
        return silt_fail_errno(e, "keep capabilities");
    return done ? 0
                : silt_fail(e, SILT_DENIED, "make files of user %u:%u", (unsigned)m.uid,
                            (unsigned)m.gid);
}

struct silt_fs_identity silt_fs_identity_be_root(void)
{
    struct silt_fs_identity old = silt_fs_identity_now();
    (void)set((struct silt_fs_identity){0, 0});
    return old;
}
