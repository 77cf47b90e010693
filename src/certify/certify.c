/* SPDX-License-Identifier: Apache-2.0 */
#include "certify/certify.h"
#include "base/own.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum {
    AUTHORITY_DAYS = 3650,
    SERVER_DAYS = 397, /* what browsers take of anybody */
    BACKDATE_S = 3600, /* clocks differ */
    SERIAL_BYTES = 16,
    NAMES_MAX = 1024,
    DOMAIN_MAX = 200,
};

static void free_certificate(X509 **x)
{
    X509_free(*x);
}

static void free_key(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

#define auto_certificate __attribute__((cleanup(free_certificate))) X509
#define auto_key __attribute__((cleanup(free_key))) EVP_PKEY

static int fail(struct silt_error *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return silt_fail(e, SILT_INTERNAL, "%s: %s", what,
                     why != NULL ? why : "OpenSSL does not say why");
}

void silt_certify_pair_init(struct silt_certify_pair *p)
{
    silt_buf_init(&p->certificate, SILT_CERTIFY_PEM_MAX);
    silt_buf_init(&p->key, SILT_CERTIFY_PEM_MAX);
}

void silt_certify_pair_fini(struct silt_certify_pair *p)
{
    if (p->key.cap > 0)
        explicit_bzero(p->key.data, p->key.cap);
    silt_buf_fini(&p->certificate);
    silt_buf_fini(&p->key);
}

/* Text */

static void take_text(BIO *from, struct silt_buf *out)
{
    char *text = NULL;
    long len = BIO_get_mem_data(from, &text);
    silt_buf_add(out, (silt_slice){text, len > 0 ? (size_t)len : 0});
}

static int write_pair(X509 *x, EVP_PKEY *key, struct silt_certify_pair *ret, struct silt_error *e)
{
    BIO *public = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
    int good = PEM_write_bio_X509(public, x) == 1
               && PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (good) {
        take_text(public, &ret->certificate);
        take_text(secret, &ret->key);
    }
    BIO_free(public);
    BIO_free(secret);
    return good && !ret->certificate.broken && !ret->key.broken ? 0 : fail(e, "write certificate");
}

static int no_passphrase(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

static int read_pair(const struct silt_certify_pair *p, X509 **ret_x, EVP_PKEY **ret_key,
                     struct silt_error *e)
{
    BIO *public = BIO_new_mem_buf(p->certificate.data, (int)p->certificate.len);
    BIO *secret = BIO_new_mem_buf(p->key.data, (int)p->key.len);
    *ret_x = PEM_read_bio_X509(public, NULL, no_passphrase, NULL);
    *ret_key = PEM_read_bio_PrivateKey(secret, NULL, no_passphrase, NULL);
    BIO_free(public);
    BIO_free(secret);
    if (*ret_x == NULL || *ret_key == NULL || X509_check_private_key(*ret_x, *ret_key) != 1)
        return fail(e, "the authority's certificate and key");
    return 0;
}

/* A domain is put into texts that OpenSSL reads: nothing but names passes. */
static int check_domain(const char *domain, struct silt_error *e)
{
    size_t len = strlen(domain);
    if (len > DOMAIN_MAX || strspn(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len)
        return silt_fail(e, SILT_INVALID, "%.80s is not a domain", domain);
    return 0;
}

/* Certificates */

static int add(X509 *x, X509 *issuer, int what, const char *text, struct silt_error *e)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, what, text);
    int good = extension != NULL && X509_add_ext(x, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return good ? 0 : fail(e, text);
}

static int set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return 0;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    int good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
    BN_free(number);
    return good;
}

static int begin(const char *name, int days, EVP_PKEY **ret_key, X509 **ret_x, struct silt_error *e)
{
    X509 *x = *ret_x = X509_new();
    EVP_PKEY *key = *ret_key = EVP_EC_gen("P-256");
    if (x == NULL || key == NULL || X509_set_version(x, X509_VERSION_3) != 1 || set_serial(x) != 1
        || X509_gmtime_adj(X509_getm_notBefore(x), -BACKDATE_S) == NULL
        || X509_time_adj_ex(X509_getm_notAfter(x), days, 0, NULL) == NULL
        || X509_set_pubkey(x, key) != 1
        || X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                                      (const unsigned char *)name, -1, -1, 0)
               != 1)
        return fail(e, "make certificate");
    return 0;
}

static int sign(X509 *x, const X509 *issuer, EVP_PKEY *key, struct silt_error *e)
{
    if (X509_set_issuer_name(x, X509_get_subject_name(issuer)) != 1
        || X509_sign(x, key, EVP_sha256()) == 0)
        return fail(e, "sign certificate");
    return 0;
}

int silt_certify_authority(const char *domain, struct silt_certify_pair *ret, struct silt_error *e)
{
    auto_certificate *x = NULL;
    auto_key *key = NULL;
    char name[128], machine[65] = "", names[NAMES_MAX];
    (void)gethostname(machine, sizeof(machine) - 1);
    (void)snprintf(name, sizeof(name), "Silt development CA of %.40s", machine);
    (void)snprintf(names, sizeof(names),
                   "critical,permitted;DNS:localhost,permitted;IP:127.0.0.0/"
                   "255.0.0.0,permitted;IP:0:0:0:0:0:0:0:1/"
                   "FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF%s%s",
                   domain[0] != 0 ? ",permitted;DNS:" : "", domain);
    if (check_domain(domain, e) < 0 || begin(name, AUTHORITY_DAYS, &key, &x, e) < 0)
        return -1;
    if (add(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0", e) < 0
        || add(x, x, NID_key_usage, "critical,keyCertSign,cRLSign", e) < 0
        || add(x, x, NID_ext_key_usage, "serverAuth", e)
               < 0 /* where it is trusted for everything, it signs no mail and no program */
        || add(x, x, NID_subject_key_identifier, "hash", e) < 0
        || add(x, x, NID_name_constraints, names, e) < 0 || sign(x, x, key, e) < 0)
        return -1;
    return write_pair(x, key, ret, e);
}

/* As a browser would. */
static int verify(X509 *x, X509 *issuer, struct silt_error *e)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    int good = store != NULL && context != NULL && X509_STORE_add_cert(store, issuer) == 1
               && X509_STORE_CTX_init(context, store, x, NULL) == 1
               && X509_verify_cert(context) == 1;
    const char *why = X509_verify_cert_error_string(
        context != NULL ? X509_STORE_CTX_get_error(context) : X509_V_ERR_UNSPECIFIED);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    ERR_clear_error();
    return good ? 0 : silt_fail(e, SILT_CONFLICT, "the authority cannot vouch for this: %s", why);
}

int silt_certify_server(const struct silt_certify_pair *authority, const char *domain,
                        struct silt_certify_pair *ret, struct silt_error *e)
{
    auto_certificate *x = NULL, *issuer = NULL;
    auto_key *key = NULL, *signer = NULL;
    char names[NAMES_MAX];
    (void)snprintf(names, sizeof(names),
                   "DNS:*.silt.localhost,DNS:silt.localhost,DNS:localhost,IP:127.0.0.1,IP:::1");
    if (check_domain(domain, e) < 0 || read_pair(authority, &issuer, &signer, e) < 0
        || begin("Silt previews", SERVER_DAYS, &key, &x, e) < 0)
        return -1;
    size_t len = strlen(names);
    if (domain[0] != 0)
        (void)snprintf(names + len, sizeof(names) - len, ",DNS:*.%s,DNS:%s", domain, domain);
    if (add(x, issuer, NID_basic_constraints, "critical,CA:FALSE", e) < 0
        || add(x, issuer, NID_key_usage, "critical,digitalSignature", e) < 0
        || add(x, issuer, NID_ext_key_usage, "serverAuth", e) < 0
        || add(x, issuer, NID_subject_alt_name, names, e) < 0
        || add(x, issuer, NID_subject_key_identifier, "hash", e) < 0
        || add(x, issuer, NID_authority_key_identifier, "keyid", e) < 0
        || sign(x, issuer, signer, e) < 0 || verify(x, issuer, e) < 0)
        return -1;
    return write_pair(x, key, ret, e);
}
