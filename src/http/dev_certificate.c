/* SPDX-License-Identifier: Apache-2.0 */
#include "http/dev_certificate.h"
#include "base/clock.h"
#include "base/own.h"

#include <openssl/err.h>
#include <stdio.h>

enum {
    DAY_S = 24 * 3600,
    AUTHORITY_DAYS = 3650,
    SERVER_DAYS = 397, /* the longest that browsers accept */
    BACKDATE_S = 3600,
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

/* A domain becomes part of texts that OpenSSL parses: only names pass. */
static int check_domain(const char *domain, struct silt_error *e)
{
    size_t len = strlen(domain);
    if (len > DOMAIN_MAX || strspn(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len)
        return silt_fail(e, SILT_INVALID, "%.80s is not a domain", domain);
    return 0;
}

static int begin(const char *name, int days, EVP_PKEY **ret_key, X509 **ret_x, struct silt_error *e)
{
    int64_t until_s = silt_clock_wall_ms() / 1000 + (int64_t)days * DAY_S;
    *ret_key = silt_certificate_new_key();
    *ret_x = *ret_key != NULL ? silt_certificate_new(*ret_key, BACKDATE_S, until_s) : NULL;
    if (*ret_x == NULL || !silt_certificate_set_name(*ret_x, name))
        return silt_certificate_fail(e, "make certificate");
    return 0;
}

static int finish(X509 *x, X509 *issuer, EVP_PKEY *key,
                  const struct silt_certificate_extension *rows, struct silt_error *e)
{
    return silt_certificate_sign(x, issuer, key, rows)
               ? 0
               : silt_certificate_fail(e, "sign certificate");
}

static int write_pair(X509 *x, EVP_PKEY *key, struct silt_pem_pair *ret, struct silt_error *e)
{
    return silt_certificate_write(x, key, ret) ? 0 : silt_certificate_fail(e, "write certificate");
}

int silt_dev_certificate_authority(const char *domain, struct silt_pem_pair *ret,
                                   struct silt_error *e)
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
    const struct silt_certificate_extension rows[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        /* Where it is trusted for everything, it signs no mail and no program. */
        {NID_ext_key_usage, "serverAuth"},
        {NID_subject_key_identifier, "hash"},
        {NID_name_constraints, names},
        {0, NULL}};
    if (check_domain(domain, e) < 0 || begin(name, AUTHORITY_DAYS, &key, &x, e) < 0
        || finish(x, x, key, rows, e) < 0)
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

int silt_dev_certificate_server(const struct silt_pem_pair *authority, const char *domain,
                                struct silt_pem_pair *ret, struct silt_error *e)
{
    auto_certificate *x = NULL, *issuer = NULL;
    auto_key *key = NULL, *signer = NULL;
    char names[NAMES_MAX] =
        "DNS:*.silt.localhost,DNS:silt.localhost,DNS:localhost,IP:127.0.0.1,IP:::1";
    if (check_domain(domain, e) < 0 || begin("Silt previews", SERVER_DAYS, &key, &x, e) < 0
        || silt_certificate_read(silt_buf_slice(&authority->certificate),
                                 silt_buf_slice(&authority->key), &issuer, &signer, e)
               < 0)
        return -1;
    size_t len = strlen(names);
    if (domain[0] != 0)
        (void)snprintf(names + len, sizeof(names) - len, ",DNS:*.%s,DNS:%s", domain, domain);
    const struct silt_certificate_extension rows[] = {{NID_basic_constraints, "critical,CA:FALSE"},
                                                      {NID_key_usage, "critical,digitalSignature"},
                                                      {NID_ext_key_usage, "serverAuth"},
                                                      {NID_subject_alt_name, names},
                                                      {NID_subject_key_identifier, "hash"},
                                                      {NID_authority_key_identifier, "keyid"},
                                                      {0, NULL}};
    if (finish(x, issuer, signer, rows, e) < 0 || verify(x, issuer, e) < 0)
        return -1;
    return write_pair(x, key, ret, e);
}
