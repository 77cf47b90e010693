/* SPDX-License-Identifier: Apache-2.0 */
/* ready: sandboxes that run already and wait for a name. Those of the default image are kept at all times. Captive ones
 * (SILT_NET_CAPTIVE) are made for containers of the engine socket: some of each image that such a container was made of
 * last, and only for a while. */
#pragma once

#include "base/list.h"
#include "event/loop.h"
#include "priv/ask.h"
#include "store/store.h"

struct silt_registry;
struct silt_sandbox;
struct silt_sandbox_options;

enum { SILT_READY_KINDS = 4 };

/* What a captive container was made of, and when. */
struct silt_ready_kind {
    uint8_t digest[SILT_DIGEST_SIZE];
    char type[SILT_TYPE_SIZE];
    struct silt_priv_limits limits;
    int64_t used_ms; /* 0: nothing is here */
};

struct silt_ready {
    struct silt_link ordinary, captives; /* of struct silt_sandbox, without an id */
    uint32_t count, coming;              /* of the ordinary ones */
    uint32_t captives_coming;
    struct silt_ready_kind kinds[SILT_READY_KINDS];
    bool failed; /* the last one could not be made: try again later */
    struct silt_timer refill;
};

void silt_ready_init(struct silt_registry *r);
void silt_ready_refill_soon(struct silt_registry *r);
void silt_ready_remove_stale(struct silt_registry *r);
/* Nobody names this image any more: what was made ahead of it goes. */
void silt_ready_drop_image(struct silt_registry *r, const uint8_t digest[SILT_DIGEST_SIZE]);
/* One that fits, which is the caller's from here on; NULL: none does. */
struct silt_sandbox *silt_ready_take(struct silt_registry *r, silt_slice image, const struct silt_sandbox_options *o);

/* What sandboxes without an id tell of themselves. */
void silt_ready_expect(struct silt_sandbox *s);
void silt_ready_add(struct silt_sandbox *s);
void silt_ready_remove(struct silt_sandbox *s);
void silt_ready_on_failed(struct silt_registry *r);
