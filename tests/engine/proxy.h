/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: a silt-proxy in both its roles for the engine's tests, with the test in the place of
 * silt-super and of siltd, and a resolver for it that knows a few names. */
#pragma once

#include "harness.h"
#include "wire/egress.h"

/* Names that the resolver knows: good.test, twin.test (the same address), alias.test (CNAME of
 * good.test), six.test (IPv6 only), private.test (10.1.2.3), half.test (both), opened.test
 * (10.77.0.1, opened by the operator). Those below `nowhere` do not exist. */
struct proxy {
    pid_t egress, dial, resolver;
    int super[2];             /* our ends, of silt-super's channels */
    int siltd;                /* our end */
    volatile unsigned *asked; /* questions that reached the resolver */
    uint64_t generation;
};

bool proxy_open(struct proxy *p, struct world *w);
void proxy_close(struct proxy *p);
void proxy_crash(struct proxy *p, struct world *w); /* SIGKILL, and a new one */
void proxy_new_siltd(struct proxy *p);              /* the channel is replaced */

/* Sends; with rules they are SET's. */
bool proxy_tell(struct proxy *p, struct silt_egress_request q,
                const struct silt_egress_rule *rules);
/* The next note of this kind; false: none came in time. */
bool proxy_hear(struct proxy *p, enum silt_egress_say type, struct silt_egress_note *ret);
/* SET and its answer. `rules`: "good.test:80 *.sub.test:1-65535 93.184.215.14/32:443", of names and
 * networks. */
bool proxy_allow(struct proxy *p, uint32_t link, const char *rules);
