/* SPDX-License-Identifier: Apache-2.0 */
/* denials: the most recent connections and lookups of a sandbox that were denied: each destination
 * once, with a count and times. Kept in siltd's memory, as long as siltd and the sandbox live. */
#pragma once

#include "base/buf.h"
#include "sandbox/core/network_state.h"
#include "wire/egress.h"

enum { SILT_DENIALS_MAX = 256 }; /* per sandbox */

struct silt_denial {
    struct silt_link link;
    uint64_t count;
    int64_t first_ms, last_ms; /* wall clock */
    int64_t event_ms;          /* of its last event; 0: none */
    uint8_t protocol, reason;  /* enum silt_egress_protocol, silt_egress_reason */
    uint8_t family;            /* 4, 6; 0: no address */
    uint16_t port;             /* 0: none */
    uint8_t address[16];
    char name[]; /* "": unknown */
};

void silt_denials_init(struct silt_denials *l);
void silt_denials_fini(struct silt_denials *l);
/* Adds a report of silt-proxy, which is trusted only for this one sandbox. NULL: not a valid
 * denial. */
struct silt_denial *silt_denials_note(struct silt_denials *l, const struct silt_egress_refusal *r,
                                      int64_t now_ms);
/* True if the denial just added deserves an event: a destination once a minute, a sandbox twenty
 * times. The number of events omitted since the last one is returned with it. */
bool silt_denials_is_event(struct silt_denials *l, struct silt_denial *r, uint32_t *ret_omitted);
/* Its destination and reason as members of a JSON object. */
void silt_denial_write(struct silt_buf *b, const struct silt_denial *r);
