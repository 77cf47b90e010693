/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: the system calls that no process of a sandbox gets, on any ABI. Compiled once when
 * silt-priv starts; loading it is one system call. */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>

struct silt_seccomp {
    struct sock_fprog program; /* owns its instructions */
};

/* clone3_stays: on cgroup v2 silt-init needs clone3 for CLONE_INTO_CGROUP; new namespaces are then
 * refused by user.max_*_namespaces alone. Elsewhere clone3 answers ENOSYS and libc uses clone. */
int silt_seccomp_compile(struct silt_seccomp *s, bool clone3_stays, struct silt_error *e);
void silt_seccomp_fini(struct silt_seccomp *s);
/* For this process and all that it will start. Needs no_new_privs or CAP_SYS_ADMIN. */
int silt_seccomp_load(const struct silt_seccomp *s, struct silt_error *e);
