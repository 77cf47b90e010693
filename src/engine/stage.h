/* SPDX-License-Identifier: Apache-2.0 */
/* stage: the mount namespace that silt-priv lives in: a small read-only tmpfs with the few mounts
 * it needs and the template of what every sandbox gets (engine/template.h). Nothing else of the machine can be reached
 * from it by name, and copying it for a new sandbox is cheap. */
#pragma once

#include "base/error.h"

#define SILT_STAGE_POOL "/pool"
#define SILT_STAGE_IMAGES "/images"
#define SILT_STAGE_USR "/usr"
#define SILT_STAGE_SYS "/sys" /* an empty folder */
#define SILT_STAGE_NEW "/new"   /* a mount point for the moment */

struct silt_stage {
    const char *pool; /* folders of the machine */
    const char *images;
    const char *kernels; /* the interpreters */
    const char *cgroup; /* of the instance's memory groups: test builds only */
    const char *resolver; /* text of every sandbox's /etc/resolv.conf */
};

/* Cannot be undone. Descriptors that are open stay usable. */
int silt_stage_enter(const struct silt_stage *s, struct silt_error *e);
