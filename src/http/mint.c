/* SPDX-License-Identifier: Apache-2.0 */
#include "http/mint.h"
#include "base/clock.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DAY_S = 24 * 3600,
    AUTHORITY_S = 365 * DAY_S, /* a container may live longer than a month */
    SERIAL = 16,
    COMMON_NAME_MAX = 64, /* RFC 5280 */
    VERSION_3 = 2,
};

struct silt_mint {
    X509 *certificate;
    EVP_PKEY *key;
    EVP_PKEY *leaf_key; /* of all certificates it signs: never leaves this process */
};

static int fail(struct silt_error *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return silt_fail(e, SILT_INTERNAL, "%s: %s", what, why != NULL ? why : "OpenSSL failed");
}

static int64_t now_s(void)
{
    return silt_clock_wall_ms() / 1000;
}

/* Keeps OpenSSL from reading the machine's configuration; the first initialization counts for the
 * whole process. */
static void init(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
}

/* Certificates */

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool good = one != NULL && X509_add_ext(x, one, -1) == 1;
    X509_EXTENSION_free(one);
    return good;
}

static bool set_name(X509 *x, const char *name)
{
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                      (const unsigned char *)name, -1, -1, 0)
           == 1;
}

static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7f; /* serial numbers are positive */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
    BN_free(number);
    return good;
}

/* Valid from a day ago: clocks differ. */
static X509 *begin(EVP_PKEY *key, int64_t until_s)
{
    X509 *x = X509_new();
    if (x != NULL && X509_set_version(x, VERSION_3) == 1 && set_serial(x)
        && X509_set_pubkey(x, key) == 1
        && ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(now_s() - DAY_S)) != NULL
        && ASN1_TIME_set(X509_getm_notAfter(x), (time_t)until_s) != NULL)
        return x;
    X509_free(x);
    return NULL;
}

static bool finish_authority(X509 *x, EVP_PKEY *key)
{
    return set_name(x, "Silt sandbox authority")
           && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1
           && add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
           && add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign")
           && add_extension(x, x, NID_subject_key_identifier, "hash")
           && X509_sign(x, key, EVP_sha256()) > 0;
}

/* The name consists of letters, digits, dots, - and _, none of which is special in the text of an
 * extension. */
static bool finish_leaf(const struct silt_mint *a, X509 *x, const char *name)
{
    char names[sizeof("critical,DNS:") + SILT_EGRESS_NAME];
    bool is_short = strlen(name) <= COMMON_NAME_MAX;
    (void)snprintf(names, sizeof(names), "%sDNS:%s", is_short ? "" : "critical,", name);
    return (!is_short || set_name(x, name))
           && X509_set_issuer_name(x, X509_get_subject_name(a->certificate)) == 1
           && add_extension(x, a->certificate, NID_basic_constraints, "critical,CA:FALSE")
           && add_extension(x, a->certificate, NID_key_usage, "critical,digitalSignature")
           && add_extension(x, a->certificate, NID_ext_key_usage, "serverAuth")
           && add_extension(x, a->certificate, NID_subject_alt_name, names)
           && add_extension(x, a->certificate, NID_authority_key_identifier, "keyid:always")
           && X509_sign(x, a->key, EVP_sha256()) > 0;
}

/* PEM */

static bool put_pem(BIO *bio, char out[SILT_EGRESS_PEM_MAX], uint32_t *len)
{
    char *data = NULL;
    long size = BIO_get_mem_data(bio, &data);
    if (size <= 0 || size > SILT_EGRESS_PEM_MAX)
        return false;
    memcpy(out, data, (size_t)size);
    *len = (uint32_t)size;
    return true;
}

static bool write_pem(X509 *x, EVP_PKEY *key, struct silt_egress_authority *out)
{
    BIO *certificate = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
    bool good = certificate != NULL && secret != NULL && PEM_write_bio_X509(certificate, x) == 1
                && PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1
                && put_pem(certificate, out->certificate, &out->certificate_len)
                && put_pem(secret, out->key, &out->key_len);
    BIO_free(certificate);
    BIO_free(secret);
    return good;
}

static int read_pem(const struct silt_egress_authority *given, struct silt_mint *a,
                    struct silt_error *e)
{
    if (given->certificate_len > SILT_EGRESS_PEM_MAX || given->key_len > SILT_EGRESS_PEM_MAX)
        return silt_fail(e, SILT_INVALID, "an authority of another size");
    BIO *certificate = BIO_new_mem_buf(given->certificate, (int)given->certificate_len);
    BIO *key = BIO_new_mem_buf(given->key, (int)given->key_len);
    a->certificate = PEM_read_bio_X509(certificate, NULL, NULL, NULL);
    a->key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    BIO_free(certificate);
    BIO_free(key);
    if (a->certificate == NULL || a->key == NULL
        || X509_check_private_key(a->certificate, a->key) != 1)
        return fail(e, "read an authority");
    return 0;
}

int silt_mint_authority(struct silt_egress_authority *ret, struct silt_error *e)
{
    init();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = key != NULL ? begin(key, now_s() + AUTHORITY_S) : NULL;
    *ret = (struct silt_egress_authority){0};
    bool good = x != NULL && finish_authority(x, key) && write_pem(x, key, ret);
    X509_free(x);
    EVP_PKEY_free(key);
    return good ? 0 : fail(e, "make an authority");
}

int silt_mint_open(const struct silt_egress_authority *given, struct silt_mint **ret,
                   struct silt_error *e)
{
    struct silt_mint *m = calloc(1, sizeof(*m));
    if (m == NULL)
        abort();
    init();
    m->leaf_key = EVP_EC_gen("P-256");
    int done = m->leaf_key != NULL ? read_pem(given, m, e) : fail(e, "make a key");
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
    X509 *x = begin(m->leaf_key, until_s);
    bool good = x != NULL && finish_leaf(m, x, name) && write_pem(x, m->leaf_key, ret);
    X509_free(x);
    return good ? 0 : fail(e, "sign a certificate");
}
