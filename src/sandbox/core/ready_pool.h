/* SPDX-License-Identifier: Apache-2.0 */
/* ready_pool: sandboxes that already run and wait for a name, so that a new id need not wait for a
 * start. Ordinary ones use the default image and are always kept. Captive ones (SILT_NET_CAPTIVE)
 * serve containers of the engine socket: a few per recently used image, for a limited time. Owned
 * by the registry. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "priv/ask.h"
#include "store/store.h"

struct silt_registry;
struct silt_sandbox;
struct silt_sandbox_options;

enum { SILT_READY_POOL_KINDS = 4 };

/* The image, type and limits of a recent captive container. */
struct silt_ready_pool_kind {
    uint8_t digest[SILT_DIGEST_SIZE];
    char type[SILT_TYPE_SIZE];
    struct silt_priv_limits limits;
    int64_t used_ms; /* 0: unused entry */
};

struct silt_ready_pool {
    struct silt_link ordinary, captives; /* struct silt_sandbox without an id */
    uint32_t count, coming;              /* ordinary ones */
    uint32_t captives_coming;
    struct silt_ready_pool_kind kinds[SILT_READY_POOL_KINDS];
    bool failed; /* the last start failed: retry later */
    struct silt_timer refill;
};

void silt_ready_pool_init(struct silt_registry *r);
void silt_ready_pool_refill_soon(struct silt_registry *r);
void silt_ready_pool_remove_stale(struct silt_registry *r);
/* The image lost its last name: drops the sandboxes made from it. */
void silt_ready_pool_drop_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
/* Takes one that fits and hands it to the caller; NULL: none fits. */
struct silt_sandbox *silt_ready_pool_take(struct silt_registry *r, silt_slice image,
                                          const struct silt_sandbox_options *o);

/* Reports from sandboxes without an id. */
void silt_ready_pool_expect(struct silt_sandbox *s);
void silt_ready_pool_add(struct silt_sandbox *s);
void silt_ready_pool_remove(struct silt_sandbox *s);
void silt_ready_pool_on_failed(struct silt_registry *r);
