/* SPDX-License-Identifier: Apache-2.0 */
/* user: whom a command runs as, by the image's own /etc/passwd and /etc/group. The files are the
 * guest's and may be anything: as much is read as a child after fork, or silt-init for a session's
 * files, can spare, and nothing here allocates. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SILT_USER_GROUPS_MAX = 64, SILT_USER_NAME_MAX = 64 };

struct silt_user {
    uid_t uid;
    gid_t gid;
    gid_t groups[SILT_USER_GROUPS_MAX];
    size_t ngroups;
    char name[SILT_USER_NAME_MAX + 1]; /* empty: /etc/passwd does not know it */
    char home[PATH_MAX];
};

/* As silt_agent_start.user says. Descriptors of the two files are borrowed; -1: not there. */
int silt_user_find(const char *text, int passwd, int group, struct silt_user *ret,
                   struct silt_error *e);
/* In the image that we are in. */
int silt_user_look_up(const char *text, struct silt_user *ret, struct silt_error *e);
/* HOME, USER and LOGNAME, as far as envp does not have them: beside it, as an environment that
 * lasts as long as the process, … */
char *const *silt_user_envp(const struct silt_user *u, char *const *envp);
/* … or at the end of the text that the shell is going to load, which is the user's then. */
int silt_user_put(const struct silt_user *u, int state, struct silt_error *e);
/* No way back. */
int silt_user_become(const struct silt_user *u, struct silt_error *e);
