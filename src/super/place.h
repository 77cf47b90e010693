/* SPDX-License-Identifier: Apache-2.0 */
/* place: the folders of an instance, the locks that keep two instances apart, and the files that
 * tell others where it runs. */
#pragma once

#include "config/config.h"

#include <sys/types.h>

/* siltd's user: a name, a number, or 64998 when the default name does not exist. Never root, never
 * an id of a sandbox or an image. */
int silt_place_user(const struct silt_config *c, uid_t *ret_uid, gid_t *ret_gid,
                    struct silt_error *e);
/* silt-proxy's uid and gid: neither root's nor siltd's nor a sandbox's. */
int silt_place_proxy_user(const struct silt_config *c, uid_t siltd, uid_t *ret,
                          struct silt_error *e);
/* Makes what is missing and sets owners and modes right. */
int silt_place_folders(const struct silt_config *c, uid_t uid, gid_t gid, struct silt_error *e);
/* Holds the instance's name, its id blocks and its state folder until the process ends. */
int silt_place_lock(const struct silt_config *c, struct silt_error *e);
/* Removes the files of the locks; the locks themselves hold until the process ends. */
void silt_place_unlock(const struct silt_config *c);

/* <run>/<name>, 0644, replaced in one step. */
int silt_place_tell(const struct silt_config *c, const char *name, const char *text,
                    struct silt_error *e);
void silt_place_untell(const struct silt_config *c, const char *name);
