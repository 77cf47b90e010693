/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: records from which siltd recovers a sandbox or an image without its database: files
 * `<pool>/r/<slot>` and `<pool>/r/<digest>`. siltd defines their contents; only their length is
 * checked here. A record is replaced atomically but, like siltd's database, not synced to disk. */
#pragma once

#include "engine/storage/volume.h"
#include "wire/priv.h"

enum { SILT_RECOVERY_NAME_SIZE = 72 };

void silt_recovery_slot_name(uint32_t slot, char name[SILT_RECOVERY_NAME_SIZE]);
/* `memfd` must be sealed against any change, so that its sender cannot block the reader. */
int silt_recovery_put(const struct silt_volumes *v, const char *name, int memfd, size_t max,
                      struct silt_error *e);
int silt_recovery_remove(const struct silt_volumes *v, const char *name,
                         struct silt_error *e); /* fine when missing */
int silt_recovery_open(const struct silt_volumes *v, const char *name, int *ret_fd,
                       struct silt_error *e);
/* Lists the records of slots below `slots` as an array of struct silt_priv_recovery. `images` is
 * the directory of trees. */
int silt_recovery_list(const struct silt_volumes *v, int images, uint32_t slots, int *ret_memfd,
                       struct silt_error *e);
