/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: where a sandbox wanted to go and was not let: the last ones, each destination once, with
 * how often and when. Kept in memory, for as long as siltd and the sandbox are there. */
#pragma once

#include "base/list.h"
#include "wire/egress.h"

enum { SILT_REFUSALS_MAX = 256 }; /* of one sandbox */

struct silt_refusal {
    struct silt_link link;
    uint64_t count;
    int64_t first_ms, last_ms; /* wall */
    uint8_t protocol, reason;  /* enum silt_egress_protocol, silt_egress_reason */
    uint8_t family;            /* 4, 6; 0: there is no address */
    uint16_t port;             /* 0: none */
    uint8_t address[16];
    char name[]; /* "": not known */
};

struct silt_refusals {
    struct silt_link list; /* struct silt_refusal, the latest last */
    uint32_t count;
    uint64_t lost; /* happened too fast to be told one by one */
};

void silt_refusals_init(struct silt_refusals *l);
void silt_refusals_fini(struct silt_refusals *l);
/* As silt-proxy says: nothing of it is believed but what it may say of this one sandbox. False: it
 * is no refusal. */
bool silt_refusals_note(struct silt_refusals *l, const struct silt_egress_refusal *r,
                        int64_t now_ms);
