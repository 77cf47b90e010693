/* SPDX-License-Identifier: Apache-2.0 */
/* mount_stage: silt-priv's own mount namespace: a small read-only tmpfs with the few mounts it
 * needs and the template of what every sandbox gets (engine/launch/template.h). No other path of
 * the machine is reachable from it, and copying it for a new sandbox is cheap. */
#pragma once

#include "base/error.h"

#define SILT_MOUNT_STAGE_POOL "/pool"
#define SILT_MOUNT_STAGE_IMAGES "/images"
#define SILT_MOUNT_STAGE_USR "/usr"
#define SILT_MOUNT_STAGE_SYS "/sys" /* an empty directory */
#define SILT_MOUNT_STAGE_NEW "/new" /* a temporary mount point */

struct silt_mount_stage {
    const char *pool; /* directories of the machine */
    const char *images;
    const char *kernels;  /* files of the interpreters */
    const char *cgroup;   /* of the instance's memory groups: test builds only */
    const char *resolver; /* text of every sandbox's /etc/resolv.conf */
};

/* Cannot be undone. Open descriptors stay usable. */
int silt_mount_stage_enter(const struct silt_mount_stage *s, struct silt_error *e);
