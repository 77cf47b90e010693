/* SPDX-License-Identifier: Apache-2.0 */
/* volume: volumes of the engine socket. A volume is a sandbox of its own, under a name no caller
 * can choose; its files are those below /mnt. Nothing is mounted: a starting container gets a copy
 * of the volume, and later writes stay in the container. */
#pragma once

#include "sandbox/container/container.h"

enum { SILT_VOLUMES_MAX = 4096 };

struct silt_volume {
    struct silt_containers *all; /* borrowed */
    struct silt_link link;
    struct silt_volume_row row;
    char sandbox[SILT_ID_MAX + 1];
    struct silt_waiter waiter; /* for its destruction */
    struct silt_link removers; /* struct silt_container_ask */
    bool going;
    bool stuck; /* removal failed: it can only be removed again */
    struct silt_grave grave;
};

int silt_volumes_load(struct silt_containers *all, struct silt_error *e);
void silt_volumes_free(struct silt_containers *all);
struct silt_volume *silt_volume_find(struct silt_containers *all, silt_slice name);
/* *ret_existed: it already existed. `labels`: a JSON object, or empty. SILT_INVALID: bad name. */
int silt_volume_create(struct silt_containers *all, silt_slice name, silt_slice labels,
                       struct silt_volume **ret, bool *ret_existed, struct silt_error *e);
/* SILT_CONFLICT while an existing container names it. Calls `a` when it is gone. */
int silt_volume_remove(struct silt_volume *v, struct silt_container_ask *a, struct silt_error *e);
/* Its sandbox, started if needed. */
int silt_volume_use(struct silt_volume *v, struct silt_waiter *w, struct silt_error *e);
/* The volume behind a path of the container, and the path inside the volume; NULL: none. */
struct silt_volume *silt_container_volume_at(struct silt_container *c, silt_slice path,
                                             struct silt_buf *ret_path);

/* For program.c: copies the volumes of its mounts into its sandbox, one by one, then calls
 * on_mounted, never before it returns. */
void silt_container_mount(struct silt_container *c, struct silt_sandbox *s,
                          void (*on_mounted)(struct silt_container *c, const struct silt_error *e));
/* For COPY: from one volume to the other. */
void silt_container_copy(struct silt_container *c,
                         void (*on_copied)(struct silt_container *c, const struct silt_error *e));
void silt_container_unmount(struct silt_container *c); /* cancels a copy in progress */
