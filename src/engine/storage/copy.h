/* SPDX-License-Identifier: Apache-2.0 */
/* copy: a volume that begins as a writable copy of a layer: a btrfs snapshot of it, whose files get
 * the ids of the new owner (engine/storage/shift.h) if that is another sandbox. Runs in silt-priv's
 * workers. */
#pragma once

#include "engine/storage/volume.h"
#include "wire/priv.h"

struct silt_copy {
    uint32_t slot;
    uint32_t ids;          /* the slot's first id */
    const uint8_t *digest; /* of the layer */
    uint64_t disk_bytes;   /* its limit */
};

/* Makes the volume of a slot that has none. */
int silt_copy_make(const struct silt_volumes *v, const struct silt_copy *c, struct silt_error *e);
/* The same for a slot that has one without processes: it is replaced at once, and the former one
 * goes to the trash. The logs of its processes stay. */
int silt_copy_replace(const struct silt_volumes *v, const struct silt_copy *c,
                      struct silt_error *e);
/* Removes copies whose maker died. */
int silt_copies_clear(const struct silt_volumes *v, struct silt_error *e);
