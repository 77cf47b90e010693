/* SPDX-License-Identifier: Apache-2.0 */
#include "http/certificate.h"
#include "base/clock.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

enum { SERIAL_BYTES = 16 };

void silt_pem_pair_init(struct silt_pem_pair *p)
{
    silt_buf_init(&p->certificate, SILT_PEM_MAX);
    silt_buf_init(&p->key, SILT_PEM_MAX);
}

void silt_pem_pair_fini(struct silt_pem_pair *p)
{
    if (p->key.cap > 0)
        explicit_bzero(p->key.data, p->key.cap);
    silt_buf_fini(&p->certificate);
    silt_buf_fini(&p->key);
}

int silt_certificate_fail(struct silt_error *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return silt_fail(e, SILT_INTERNAL, "%s: %s", what, why != NULL ? why : "OpenSSL failed");
}

/* ---- certificates ---- */

EVP_PKEY *silt_certificate_new_key(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    return EVP_EC_gen("P-256");
}

/* Positive, and of one length. */
static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
    BN_free(number);
    return good;
}

X509 *silt_certificate_new(EVP_PKEY *key, int64_t backdate_s, int64_t until_s)
{
    X509 *x = X509_new();
    int64_t from_s = silt_clock_wall_ms() / 1000 - backdate_s;
    if (x != NULL && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x)
        && X509_set_pubkey(x, key) == 1
        && ASN1_TIME_set(X509_getm_notBefore(x), (time_t)from_s) != NULL
        && ASN1_TIME_set(X509_getm_notAfter(x), (time_t)until_s) != NULL)
        return x;
    X509_free(x);
    return NULL;
}

bool silt_certificate_set_name(X509 *x, const char *name)
{
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                                      (const unsigned char *)name, -1, -1, 0)
           == 1;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *text)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *one = X509V3_EXT_conf_nid(NULL, &context, nid, text);
    bool good = one != NULL && X509_add_ext(x, one, -1) == 1;
    X509_EXTENSION_free(one);
    return good;
}

bool silt_certificate_sign(X509 *x, X509 *issuer, EVP_PKEY *key,
                           const struct silt_certificate_extension *rows)
{
    if (X509_set_issuer_name(x, X509_get_subject_name(issuer)) != 1)
        return false;
    for (; rows->text != NULL; rows++)
        if (!add_extension(x, issuer, rows->nid, rows->text))
            return false;
    return X509_sign(x, key, EVP_sha256()) > 0;
}

/* ---- PEM ---- */

static void take_text(BIO *from, struct silt_buf *out)
{
    char *text = NULL;
    long len = BIO_get_mem_data(from, &text);
    silt_buf_add(out, (silt_slice){text, len > 0 ? (size_t)len : 0});
}

bool silt_certificate_write(X509 *x, EVP_PKEY *key, struct silt_pem_pair *ret)
{
    BIO *public = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    bool good = public != NULL && secret != NULL && PEM_write_bio_X509(public, x) == 1
                && PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (good) {
        take_text(public, &ret->certificate);
        take_text(secret, &ret->key);
    }
    BIO_free(public);
    BIO_free(secret);
    return good && !ret->certificate.broken && !ret->key.broken;
}

static int no_passphrase(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

int silt_certificate_read(silt_slice certificate, silt_slice key, X509 **ret_x, EVP_PKEY **ret_key,
                          struct silt_error *e)
{
    BIO *public = BIO_new_mem_buf(certificate.data, (int)certificate.len);
    BIO *secret = BIO_new_mem_buf(key.data, (int)key.len);
    *ret_x = PEM_read_bio_X509(public, NULL, no_passphrase, NULL);
    *ret_key = PEM_read_bio_PrivateKey(secret, NULL, no_passphrase, NULL);
    BIO_free(public);
    BIO_free(secret);
    if (*ret_x == NULL || *ret_key == NULL || X509_check_private_key(*ret_x, *ret_key) != 1)
        return silt_certificate_fail(e, "the authority's certificate and key");
    return 0;
}
