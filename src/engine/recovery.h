/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: what siltd needs to know a sandbox or an image again without its database: files `<pool>/r/<slot>` and
 * `<pool>/r/<digest>`. Their bytes are siltd's; here only their length is checked. A record is replaced in one step and,
 * like siltd's database, not waited for until it is on the disk. */
#pragma once

#include "engine/volume.h"
#include "wire/priv.h"

enum { SILT_RECOVERY_NAME_SIZE = 72 };

void silt_recovery_slot_name(uint32_t slot, char name[SILT_RECOVERY_NAME_SIZE]);
/* `memfd` must be sealed against any change: reading it then never waits for its sender. */
int silt_recovery_put(const struct silt_volumes *v, const char *name, int memfd, size_t max, struct silt_error *e);
int silt_recovery_remove(const struct silt_volumes *v, const char *name, struct silt_error *e); /* fine when missing */
int silt_recovery_open(const struct silt_volumes *v, const char *name, int *ret_fd, struct silt_error *e);
/* An array of struct silt_priv_recovery, of slots below `slots`. `images` is the folder of trees. */
int silt_recovery_list(const struct silt_volumes *v, int images, uint32_t slots, int *ret_memfd, struct silt_error *e);
