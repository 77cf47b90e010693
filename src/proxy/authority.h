/* SPDX-License-Identifier: Apache-2.0 */
/* authority: certificate authorities, one for each sidecar, and what they sign: a certificate for each server that a sandbox wants to
 * talk to and that is answered for here. Keys are made here and leave only to siltd, which gives them to the next silt-proxy. */
#pragma once

#include "base/map.h"
#include "base/list.h"
#include "http/tls.h"
#include "wire/egress.h"

enum { SILT_AUTHORITIES_MAX = 16384, SILT_LEAVES_EACH_MAX = 64, SILT_LEAVES_MAX = 1024 };

struct silt_authorities {
    struct silt_map map;     /* by number */
    struct silt_link leaves; /* of all, the one that was used last at the end */
    size_t nleaves;
};

struct silt_authority;

void silt_authorities_init(struct silt_authorities *all);
void silt_authorities_fini(struct silt_authorities *all);
/* Made when there is none, of `given` (may be NULL). */
int silt_authorities_at(struct silt_authorities *all, uint64_t number, const struct silt_egress_authority *given,
                        struct silt_authority **ret, struct silt_error *e);
struct silt_authority *silt_authorities_find(const struct silt_authorities *all, uint64_t number);
void silt_authorities_drop(struct silt_authorities *all, uint64_t number); /* fine when there is none */
const struct silt_egress_authority *silt_authority_blob(const struct silt_authority *a);
/* For the server of this name; borrowed until the next call. SILT_LIMIT: too many new names at once. */
int silt_authority_leaf(struct silt_authority *a, const char *name, const struct silt_tls_identity **ret,
                        struct silt_error *e);
