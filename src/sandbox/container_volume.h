/* SPDX-License-Identifier: Apache-2.0 */
/* container_volume: volumes of the engine socket. A volume is a sandbox of its own, which no name of a caller can be, and its files are
 * those below /mnt in it. Nothing is mounted: what a container is to have of a volume is copied into it when it starts, and what
 * is written there later is the container's own. */
#pragma once

#include "sandbox/container.h"

enum { SILT_VOLUMES_MAX = 4096 };

struct silt_volume {
    struct silt_containers *all; /* borrowed */
    struct silt_link link;
    struct silt_volume_row row;
    char sandbox[SILT_ID_MAX + 1];
    struct silt_waiter waiter; /* for its end */
    struct silt_link removers; /* struct silt_container_ask */
    bool going;
    bool stuck; /* it did not go: it is there to be removed again, and for nothing else */
    struct silt_grave grave;
};

int silt_volumes_load(struct silt_containers *all, struct silt_error *e);
void silt_volumes_free(struct silt_containers *all);
struct silt_volume *silt_volume_find(struct silt_containers *all, silt_slice name);
/* *ret_existed: it was there. `labels`: a JSON object, or empty. SILT_INVALID: the name. */
int silt_volume_create(struct silt_containers *all, silt_slice name, silt_slice labels, struct silt_volume **ret, bool *ret_existed,
                       struct silt_error *e);
/* SILT_CONFLICT while a container that is there names it. `a` is told when it is gone. */
int silt_volume_remove(struct silt_volume *v, struct silt_container_ask *a, struct silt_error *e);
/* Its sandbox, running. */
int silt_volume_use(struct silt_volume *v, struct silt_waiter *w, struct silt_error *e);
/* The volume that has a path of the container, and where it is there; NULL: none. */
struct silt_volume *silt_container_volume_at(struct silt_container *c, silt_slice path, struct silt_buf *ret_path);

/* For container.c: fills its sandbox with what its mounts name, one after the other; then on_mounted, never from inside. */
void silt_container_mount(struct silt_container *c, struct silt_sandbox *s,
                          void (*on_mounted)(struct silt_container *c, const struct silt_error *e));
/* Of a COPY: from one volume to the other. */
void silt_container_copy(struct silt_container *c, void (*on_copied)(struct silt_container *c, const struct silt_error *e));
void silt_container_unmount(struct silt_container *c); /* leaves what is under way */
