/* SPDX-License-Identifier: Apache-2.0 */
/* user: resolves the user of a command from the image's own /etc/passwd and /etc/group. The guest
 * controls these files, so reads are bounded. Nothing here allocates: it runs in children after
 * fork, and in silt-init for the files of a session. */
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
    char name[SILT_USER_NAME_MAX + 1]; /* empty: not in /etc/passwd */
    char home[PATH_MAX];
};

/* `text` as in silt_agent_start.user. The descriptors of the two files are borrowed; -1: no
 * file. */
int silt_user_find(const char *text, int passwd, int group, struct silt_user *ret,
                   struct silt_error *e);
/* Looks in the image we run in. */
int silt_user_look_up(const char *text, struct silt_user *ret, struct silt_error *e);
/* Adds HOME, USER and LOGNAME if envp lacks them: as an environment that lasts as long as the
 * process, … */
char *const *silt_user_envp(const struct silt_user *u, char *const *envp);
/* … or at the end of the text that the shell will load, which then belongs to the user. */
int silt_user_put(const struct silt_user *u, int state, struct silt_error *e);
/* Cannot be undone. */
int silt_user_become(const struct silt_user *u, struct silt_error *e);
