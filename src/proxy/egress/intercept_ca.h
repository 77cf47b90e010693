/* SPDX-License-Identifier: Apache-2.0 */
/* intercept_ca: one certificate authority per sidecar, and the leaf certificates it signs for the
 * servers that the sidecar impersonates. Keys are generated here and leave only to siltd, which
 * hands them to the next silt-proxy. */
#pragma once

#include "base/map.h"
#include "base/list.h"
#include "http/tls.h"
#include "wire/egress.h"

enum { SILT_INTERCEPT_CAS_MAX = 16384, SILT_LEAVES_EACH_MAX = 64, SILT_LEAVES_MAX = 1024 };

struct silt_intercept_cas {
    struct silt_map map;     /* by number */
    struct silt_link leaves; /* of all, the one that was used last at the end */
    size_t nleaves;
};

struct silt_intercept_ca;

void silt_intercept_cas_init(struct silt_intercept_cas *all);
void silt_intercept_cas_fini(struct silt_intercept_cas *all);
/* Made when there is none, of `given` (may be NULL). */
int silt_intercept_cas_at(struct silt_intercept_cas *all, uint64_t number,
                          const struct silt_egress_authority *given, struct silt_intercept_ca **ret,
                          struct silt_error *e);
struct silt_intercept_ca *silt_intercept_cas_find(const struct silt_intercept_cas *all,
                                                  uint64_t number);
void silt_intercept_cas_drop(struct silt_intercept_cas *all,
                             uint64_t number); /* fine when there is none */
const struct silt_egress_authority *silt_intercept_ca_blob(const struct silt_intercept_ca *a);
/* For the server of this name; borrowed until the next call. SILT_LIMIT: too many new names at
 * once. */
int silt_intercept_ca_leaf(struct silt_intercept_ca *a, const char *name,
                           const struct silt_tls_identity **ret, struct silt_error *e);
