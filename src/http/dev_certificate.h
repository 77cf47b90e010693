/* SPDX-License-Identifier: Apache-2.0 */
/* dev_certificate: a certificate authority for the machine of one developer, and the certificate of
 * previews that it signs, for `silt tls dev`. Browsers that trust the authority lose nothing if its
 * key leaks: it can sign only for names of this machine and of the preview domain. */
#pragma once

#include "http/certificate.h"

/* For localhost, `domain` and all names below them; "": localhost only. */
int silt_dev_certificate_authority(const char *domain, struct silt_pem_pair *ret,
                                   struct silt_error *e);
/* For localhost, *.silt.localhost, domain and *.domain. SILT_CONFLICT: the authority may not sign
 * for them. */
int silt_dev_certificate_server(const struct silt_pem_pair *authority, const char *domain,
                                struct silt_pem_pair *ret, struct silt_error *e);
