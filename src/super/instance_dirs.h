/* SPDX-License-Identifier: Apache-2.0 */
/* instance_dirs: the directories of an instance, the locks that keep two instances apart, and the
 * files that show other programs where it runs. Used by silt-super. */
#pragma once

#include "config/config.h"

#include <sys/types.h>

/* siltd's user: a name, a number, or 64998 if the default name does not exist. Never root, never an
 * id of a sandbox or an image. */
int silt_instance_dirs_user(const struct silt_config *c, uid_t *ret_uid, gid_t *ret_gid,
                            struct silt_error *e);
/* silt-proxy's uid and gid: neither root's nor siltd's nor a sandbox's. */
int silt_instance_dirs_proxy_user(const struct silt_config *c, uid_t siltd, uid_t *ret,
                                  struct silt_error *e);
/* Creates missing directories and corrects owners and modes. */
int silt_instance_dirs_directories(const struct silt_config *c, uid_t uid, gid_t gid,
                                   struct silt_error *e);
/* Open as long as the instance runs: the locks end with them. */
enum { SILT_INSTANCE_LOCKS_MAX = 2 + 255 };
struct silt_instance_locks {
    int fds[SILT_INSTANCE_LOCKS_MAX];
    uint32_t count;
};

/* Locks the instance's name, its id blocks and its state directory. */
int silt_instance_dirs_lock(const struct silt_config *c, struct silt_instance_locks *ret,
                            struct silt_error *e);
/* Removes the lock files; the locks themselves hold until the process exits. */
void silt_instance_dirs_unlock(const struct silt_config *c);

/* Writes <run>/<name>, mode 0644, atomically. */
int silt_instance_dirs_tell(const struct silt_config *c, const char *name, const char *text,
                            struct silt_error *e);
void silt_instance_dirs_untell(const struct silt_config *c, const char *name);
