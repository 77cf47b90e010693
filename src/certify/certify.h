/* SPDX-License-Identifier: Apache-2.0 */
/* certify: a certificate authority for the machine of one developer, and the certificate of
 * previews that it vouches for. It can vouch for nothing else than names of this machine and of the
 * preview domain: browsers that trust it lose nothing if its key is lost. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { SILT_CERTIFY_PEM_MAX = 64 << 10 };

struct silt_certify_pair {
    struct silt_buf certificate, key; /* PEM */
};

void silt_certify_pair_init(struct silt_certify_pair *p);
void silt_certify_pair_fini(struct silt_certify_pair *p);

/* Beside localhost and what is below it the authority may vouch for `domain` and what is below
 * that; "": nothing else. */
int silt_certify_authority(const char *domain, struct silt_certify_pair *ret, struct silt_error *e);
/* For localhost, *.silt.localhost, domain and *.domain. SILT_CONFLICT: the authority may not vouch
 * for them. */
int silt_certify_server(const struct silt_certify_pair *authority, const char *domain,
                        struct silt_certify_pair *ret, struct silt_error *e);

#define silt_auto_certify_pair                                                                     \
    __attribute__((cleanup(silt_certify_pair_fini))) struct silt_certify_pair
