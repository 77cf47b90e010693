/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: the filter of system calls denied to every process of a sandbox, on every ABI. Compiled
 * once when silt-priv starts; loading it is one system call. */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>

struct silt_seccomp {
    struct sock_fprog program; /* owns its instructions */
};

/* clone3_stays: on cgroup v2 silt-init needs clone3 for CLONE_INTO_CGROUP, so that only
 * user.max_*_namespaces prevents new namespaces. Otherwise clone3 fails with ENOSYS and libc falls
 * back to clone. */
int silt_seccomp_compile(struct silt_seccomp *s, bool clone3_stays, struct silt_error *e);
void silt_seccomp_fini(struct silt_seccomp *s);
/* Applies to this process and its future children. Needs no_new_privs or CAP_SYS_ADMIN. */
int silt_seccomp_load(const struct silt_seccomp *s, struct silt_error *e);
