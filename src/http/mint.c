/* SPDX-License-Identifier: Apache-2.0 */
#include "http/mint.h"
#include "base/clock.h"
#include "http/certificate.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DAY_S = 24 * 3600,
    AUTHORITY_S = 365 * DAY_S, /* a container may live longer than a month */
    COMMON_NAME_MAX = 64,      /* RFC 5280 */
};

struct silt_mint {
    X509 *certificate;
    EVP_PKEY *key;
    EVP_PKEY *leaf_key; /* of all certificates it signs: never leaves this process */
};

static int64_t now_s(void)
{
    return silt_clock_wall_ms() / 1000;
}

static bool sign_authority(X509 *x, EVP_PKEY *key)
{
    static const struct silt_certificate_extension rows[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        {NID_subject_key_identifier, "hash"},
        {0, NULL}};
    return silt_certificate_set_name(x, "Silt sandbox authority")
           && silt_certificate_sign(x, x, key, rows);
}

/* The name consists of letters, digits, dots, - and _, none of which is special in the text of an
 * extension. */
static bool sign_leaf(const struct silt_mint *a, X509 *x, const char *name)
{
    char names[sizeof("critical,DNS:") + SILT_EGRESS_NAME];
    bool is_short = strlen(name) <= COMMON_NAME_MAX;
    (void)snprintf(names, sizeof(names), "%sDNS:%s", is_short ? "" : "critical,", name);
    const struct silt_certificate_extension rows[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, "serverAuth"},
        {NID_subject_alt_name, names},
        {NID_authority_key_identifier, "keyid:always"},
        {0, NULL}};
    return (!is_short || silt_certificate_set_name(x, name))
           && silt_certificate_sign(x, a->certificate, a->key, rows);
}

static bool write_pem(X509 *x, EVP_PKEY *key, struct silt_egress_authority *out)
{
    silt_auto_pem_pair pair = {0};
    silt_pem_pair_init(&pair);
    if (!silt_certificate_write(x, key, &pair) || pair.certificate.len > SILT_EGRESS_PEM_MAX
        || pair.key.len > SILT_EGRESS_PEM_MAX)
        return false;
    out->certificate_len = (uint32_t)pair.certificate.len;
    out->key_len = (uint32_t)pair.key.len;
    memcpy(out->certificate, pair.certificate.data, pair.certificate.len);
    memcpy(out->key, pair.key.data, pair.key.len);
    return true;
}

static int read_pem(const struct silt_egress_authority *given, struct silt_mint *a,
                    struct silt_error *e)
{
    if (given->certificate_len > SILT_EGRESS_PEM_MAX || given->key_len > SILT_EGRESS_PEM_MAX)
        return silt_fail(e, SILT_INVALID, "an authority of another size");
    return silt_certificate_read((silt_slice){given->certificate, given->certificate_len},
                                 (silt_slice){given->key, given->key_len}, &a->certificate, &a->key,
                                 e);
}

int silt_mint_authority(struct silt_egress_authority *ret, struct silt_error *e)
{
    EVP_PKEY *key = silt_certificate_new_key();
    X509 *x = key != NULL ? silt_certificate_new(key, DAY_S, now_s() + AUTHORITY_S) : NULL;
    *ret = (struct silt_egress_authority){0};
    bool good = x != NULL && sign_authority(x, key) && write_pem(x, key, ret);
    X509_free(x);
    EVP_PKEY_free(key);
    return good ? 0 : silt_certificate_fail(e, "make an authority");
}

int silt_mint_open(const struct silt_egress_authority *given, struct silt_mint **ret,
                   struct silt_error *e)
{
    struct silt_mint *m = calloc(1, sizeof(*m));
    if (m == NULL)
        abort();
    m->leaf_key = silt_certificate_new_key();
    int done = m->leaf_key != NULL ? read_pem(given, m, e) : silt_certificate_fail(e, "make a key");
    if (done < 0)
        silt_mint_close(m);
    else
        *ret = m;
    return done;
}

void silt_mint_close(struct silt_mint *m)
{
    if (m == NULL)
        return;
    X509_free(m->certificate);
    EVP_PKEY_free(m->key);
    EVP_PKEY_free(m->leaf_key);
    free(m);
}

int silt_mint_sign(const struct silt_mint *m, const char *name, int64_t until_s,
                   struct silt_egress_authority *ret, struct silt_error *e)
{
    X509 *x = silt_certificate_new(m->leaf_key, DAY_S, until_s);
    bool good = x != NULL && sign_leaf(m, x, name) && write_pem(x, m->leaf_key, ret);
    X509_free(x);
    return good ? 0 : silt_certificate_fail(e, "sign a certificate");
}
