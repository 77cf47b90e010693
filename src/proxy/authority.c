/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/authority.h"
#include "base/clock.h"
#include "base/own.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum {
    DAY_S = 24 * 3600,
    AUTHORITY_S = 365 * DAY_S, /* a container may live longer than a month */
    LEAF_S = 30 * DAY_S,
    SERIAL = 16,
    COMMON_NAME_MAX = 64, /* RFC 5280 */
    VERSION_3 = 2,
};

struct leaf {
    struct silt_link link, own;       /* of all; of its authority, oldest first */
    struct silt_authority *authority; /* borrowed */
    int64_t until_s;
    struct silt_tls_identity *identity;
    char name[SILT_EGRESS_NAME];
};

struct silt_authority {
    struct silt_authorities *all; /* borrowed */
    uint64_t number;
    struct silt_egress_authority blob;
    X509 *certificate;
    EVP_PKEY *key;
    EVP_PKEY *leaf_key; /* of all its leaves: it never leaves this process */
    struct silt_map leaves;
    struct silt_link order;
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
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                      -1, 0)
           == 1;
}

static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7f; /* positive */
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool good = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x)) != NULL;
    BN_free(number);
    return good;
}

/* Begins a day ago: clocks differ. */
static X509 *begin(EVP_PKEY *key, int64_t until_s)
{
    X509 *x = X509_new();
    if (x != NULL && X509_set_version(x, VERSION_3) == 1 && set_serial(x) && X509_set_pubkey(x, key) == 1
        && ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(now_s() - DAY_S)) != NULL
        && ASN1_TIME_set(X509_getm_notAfter(x), (time_t)until_s) != NULL)
        return x;
    X509_free(x);
    return NULL;
}

static bool finish_authority(X509 *x, EVP_PKEY *key)
{
    return set_name(x, "Silt sandbox authority") && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1
           && add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
           && add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign")
           && add_extension(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()) > 0;
}

/* The name is of letters, digits, dots, - and _: nothing in it means anything to the text of an extension. */
static bool finish_leaf(const struct silt_authority *a, X509 *x, const char *name)
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

static int read_pem(const struct silt_egress_authority *given, struct silt_authority *a, struct silt_error *e)
{
    if (given->certificate_len > SILT_EGRESS_PEM_MAX || given->key_len > SILT_EGRESS_PEM_MAX)
        return silt_fail(e, SILT_INVALID, "an authority of another size");
    BIO *certificate = BIO_new_mem_buf(given->certificate, (int)given->certificate_len);
    BIO *key = BIO_new_mem_buf(given->key, (int)given->key_len);
    a->certificate = PEM_read_bio_X509(certificate, NULL, NULL, NULL);
    a->key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    BIO_free(certificate);
    BIO_free(key);
    if (a->certificate == NULL || a->key == NULL || X509_check_private_key(a->certificate, a->key) != 1)
        return fail(e, "read an authority");
    a->blob = *given;
    return 0;
}

static int make(struct silt_authority *a, struct silt_error *e)
{
    a->key = EVP_EC_gen("P-256");
    if (a->key != NULL)
        a->certificate = begin(a->key, now_s() + AUTHORITY_S);
    if (a->certificate == NULL || !finish_authority(a->certificate, a->key)
        || !write_pem(a->certificate, a->key, &a->blob))
        return fail(e, "make an authority");
    return 0;
}

/* Leaves */

static void free_leaf(struct leaf *l)
{
    struct silt_authority *a = l->authority;
    (void)silt_map_remove(&a->leaves, silt_slice_of(l->name));
    silt_list_remove(&l->link);
    silt_list_remove(&l->own);
    a->all->nleaves--;
    silt_tls_identity_free(l->identity);
    free(l);
}

static void make_room(struct silt_authority *a)
{
    if (a->leaves.used >= SILT_LEAVES_EACH_MAX)
        free_leaf(silt_list_first(&a->order, struct leaf, own));
    if (a->all->nleaves >= SILT_LEAVES_MAX)
        free_leaf(silt_list_first(&a->all->leaves, struct leaf, link));
}

static int sign(const struct silt_authority *a, const char *name, int64_t until_s, struct silt_tls_identity **ret,
                struct silt_error *e)
{
    struct silt_egress_authority pem;
    X509 *x = begin(a->leaf_key, until_s);
    bool good = x != NULL && finish_leaf(a, x, name) && write_pem(x, a->leaf_key, &pem);
    X509_free(x);
    if (!good)
        return fail(e, "sign a certificate");
    return silt_tls_identity_new((silt_slice){pem.certificate, pem.certificate_len}, (silt_slice){pem.key, pem.key_len},
                                 ret, e);
}

static int add_leaf(struct silt_authority *a, const char *name, struct leaf **ret, struct silt_error *e)
{
    struct silt_tls_identity *identity;
    int64_t until_s = now_s() + LEAF_S;
    if (sign(a, name, until_s, &identity, e) < 0)
        return silt_because(e, "certificate for %s", name);
    make_room(a);
    struct leaf *l = calloc(1, sizeof(*l));
    if (l == NULL)
        abort();
    *l = (struct leaf){.authority = a, .until_s = until_s, .identity = identity};
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    silt_list_init(&l->link);
    silt_list_init(&l->own);
    silt_list_append(&a->all->leaves, &l->link);
    silt_list_append(&a->order, &l->own);
    silt_map_put(&a->leaves, silt_slice_of(l->name), l);
    a->all->nleaves++;
    *ret = l;
    return 0;
}

int silt_authority_leaf(struct silt_authority *a, const char *name, const struct silt_tls_identity **ret,
                        struct silt_error *e)
{
    struct leaf *l = silt_map_find(&a->leaves, silt_slice_of(name));
    if (l != NULL && l->until_s - now_s() < DAY_S) {
        free_leaf(l);
        l = NULL;
    }
    if (l == NULL && add_leaf(a, name, &l, e) < 0)
        return -1;
    silt_list_remove(&l->link);
    silt_list_remove(&l->own);
    silt_list_append(&a->all->leaves, &l->link);
    silt_list_append(&a->order, &l->own);
    *ret = l->identity;
    return 0;
}

/* All of them */

static silt_slice key_of(const uint64_t *number)
{
    return (silt_slice){(const char *)number, sizeof(*number)};
}

static void free_authority(struct silt_authority *a)
{
    while (!silt_list_empty(&a->order))
        free_leaf(silt_list_first(&a->order, struct leaf, own));
    silt_map_fini(&a->leaves);
    X509_free(a->certificate);
    EVP_PKEY_free(a->key);
    EVP_PKEY_free(a->leaf_key);
    free(a);
}

static int fill(struct silt_authority *a, const struct silt_egress_authority *given, struct silt_error *e)
{
    a->leaf_key = EVP_EC_gen("P-256");
    if (a->leaf_key == NULL)
        return fail(e, "make a key");
    return given != NULL ? read_pem(given, a, e) : make(a, e);
}

void silt_authorities_init(struct silt_authorities *all)
{
    *all = (struct silt_authorities){0};
    silt_map_init(&all->map);
    silt_list_init(&all->leaves);
}

void silt_authorities_fini(struct silt_authorities *all)
{
    size_t at = 0;
    for (struct silt_authority *a; (a = silt_map_next(&all->map, &at)) != NULL;)
        free_authority(a);
    silt_map_fini(&all->map);
}

struct silt_authority *silt_authorities_find(const struct silt_authorities *all, uint64_t number)
{
    return silt_map_find(&all->map, key_of(&number));
}

int silt_authorities_at(struct silt_authorities *all, uint64_t number, const struct silt_egress_authority *given,
                        struct silt_authority **ret, struct silt_error *e)
{
    *ret = silt_authorities_find(all, number);
    if (*ret != NULL)
        return 0;
    if (all->map.used >= SILT_AUTHORITIES_MAX)
        return silt_fail(e, SILT_LIMIT, "more than %d authorities", SILT_AUTHORITIES_MAX);
    struct silt_authority *a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    a->all = all;
    a->number = number;
    silt_map_init(&a->leaves);
    silt_list_init(&a->order);
    if (fill(a, given, e) < 0) {
        free_authority(a);
        return -1;
    }
    silt_map_put(&all->map, key_of(&a->number), a);
    *ret = a;
    return 0;
}

void silt_authorities_drop(struct silt_authorities *all, uint64_t number)
{
    struct silt_authority *a = silt_map_remove(&all->map, key_of(&number));
    if (a != NULL)
        free_authority(a);
}

const struct silt_egress_authority *silt_authority_blob(const struct silt_authority *a)
{
    return &a->blob;
}
