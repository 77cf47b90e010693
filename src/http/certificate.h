/* SPDX-License-Identifier: Apache-2.0 */
/* certificate: the steps of making a certificate (ECDSA P-256), and PEM. For http/mint and
 * http/dev_certificate. */
#pragma once

#include "base/buf.h"

#include <openssl/x509v3.h>

enum { SILT_PEM_MAX = 64 << 10 };

struct silt_pem_pair {
    struct silt_buf certificate, key;
};

void silt_pem_pair_init(struct silt_pem_pair *p);
void silt_pem_pair_fini(struct silt_pem_pair *p);

#define silt_auto_pem_pair __attribute__((cleanup(silt_pem_pair_fini))) struct silt_pem_pair

/* "what: the reason that OpenSSL gives". Returns -1. */
int silt_certificate_fail(struct silt_error *e, const char *what);

/* NULL: it failed. The first call initializes OpenSSL for the whole process, without the machine's
 * configuration. */
EVP_PKEY *silt_certificate_new_key(void);
/* Valid from `backdate_s` seconds ago, since clocks differ. NULL: it failed. */
X509 *silt_certificate_new(EVP_PKEY *key, int64_t backdate_s, int64_t until_s);
bool silt_certificate_set_name(X509 *x, const char *name);
/* Texts that OpenSSL parses: no name in them may have special characters. */
struct silt_certificate_extension {
    int nid;
    const char *text;
};
/* Adds the extensions, the last of which has no text, and signs. */
bool silt_certificate_sign(X509 *x, X509 *issuer, EVP_PKEY *key,
                           const struct silt_certificate_extension *rows);

bool silt_certificate_write(X509 *x, EVP_PKEY *key, struct silt_pem_pair *ret);
/* Checks that they belong together. The results are the caller's, also when it fails. */
int silt_certificate_read(silt_slice certificate, silt_slice key, X509 **ret_x, EVP_PKEY **ret_key,
                          struct silt_error *e);
