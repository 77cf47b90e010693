/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"
#include "base/own.h"

#include <assert.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { CHAIN_MAX = 16, WRITE_PIECE = 16 << 10 };

struct silt_tls_identity {
    SSL_CTX *context;
};

/* SHAKING --finished--> OPEN --close_notify--> ENDED
 *   any --invalid bytes--> BROKEN */
enum state { SHAKING, OPEN, ENDED, BROKEN };

struct silt_tls {
    SSL *ssl;
    enum state state;
    silt_slice *wire;     /* borrowed, while reading */
    struct silt_buf *out; /* borrowed */
};

static int fail(struct silt_error *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return silt_fail(e, SILT_INVALID, "%s: %s", what, why != NULL ? why : "not understood");
}

/* The wire: a BIO on our own buffers, without copying. */

static int take_wire(BIO *b, char *out, size_t len, size_t *ret)
{
    struct silt_tls *t = BIO_get_data(b);
    silt_slice *wire = t->wire;
    BIO_clear_retry_flags(b);
    if (wire == NULL || wire->len == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    *ret = len < wire->len ? len : wire->len;
    memcpy(out, wire->data, *ret);
    wire->data += *ret;
    wire->len -= *ret;
    return 1;
}

static int put_wire(BIO *b, const char *data, size_t len, size_t *ret)
{
    struct silt_tls *t = BIO_get_data(b);
    silt_buf_add(t->out, (silt_slice){data, len});
    *ret = len;
    return t->out->broken ? 0 : 1;
}

static long control_wire(BIO *b, int what, long number, void *pointer)
{
    (void)b;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

/* Created once; there is only one thread. */
static const BIO_METHOD *wire_method(void)
{
    static BIO_METHOD *method;
    if (method != NULL)
        return method;
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "silt");
    if (method == NULL || BIO_meth_set_read_ex(method, take_wire) == 0
        || BIO_meth_set_write_ex(method, put_wire) == 0
        || BIO_meth_set_ctrl(method, control_wire) == 0)
        abort();
    return method;
}

/* Identities */

/* Otherwise OpenSSL would prompt for a key's passphrase on a terminal that does not exist. */
static int no_passphrase(char *out, int size, int writing, void *context)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

static int take_certificate(SSL_CTX *c, silt_slice pem, struct silt_error *e)
{
    BIO *in = BIO_new_mem_buf(pem.data, (int)pem.len);
    int count = 0, good = 1;
    X509 *x;
    while (good == 1 && count < CHAIN_MAX
           && (x = PEM_read_bio_X509(in, NULL, no_passphrase, NULL)) != NULL) {
        good = count++ == 0 ? SSL_CTX_use_certificate(c, x) : (int)SSL_CTX_add1_chain_cert(c, x);
        X509_free(x);
    }
    BIO_free(in);
    unsigned long last = ERR_peek_last_error();
    if (good == 1 && count > 0 && ERR_GET_REASON(last) == PEM_R_NO_START_LINE)
        ERR_clear_error(); /* the chain has ended */
    else if (good != 1 || count == 0 || last != 0)
        return fail(e, "certificate");
    return 0;
}

static int take_key(SSL_CTX *c, silt_slice pem, struct silt_error *e)
{
    BIO *in = BIO_new_mem_buf(pem.data, (int)pem.len);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);
    int good =
        key != NULL && SSL_CTX_use_PrivateKey(c, key) == 1 && SSL_CTX_check_private_key(c) == 1;
    EVP_PKEY_free(key);
    BIO_free(in);
    return good ? 0 : fail(e, "key");
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *len,
                           const unsigned char *in, unsigned in_len, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen = NULL;
    (void)ssl;
    (void)context;
    if (SSL_select_next_proto(&chosen, len, ours, sizeof(ours) - 1, in, in_len)
        != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Session tickets are self-contained, so the server keeps no session state. */
static int set_rules(SSL_CTX *c, struct silt_error *e)
{
    static const unsigned char name[] = "silt";
    static char groups[] = "X25519:P-256:P-384"; /* OpenSSL's macro needs a non-const string */
    SSL_CTX_set_security_level(c, 2);
    (void)SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION
                                     | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    (void)SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE
                                  | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(c, choose_protocol, NULL);
    if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) != 1 || SSL_CTX_set_num_tickets(c, 1) != 1
        || SSL_CTX_set_cipher_list(c, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1
        || SSL_CTX_set1_groups_list(c, groups) != 1
        || SSL_CTX_set_session_id_context(c, name, sizeof(name) - 1) != 1)
        return fail(e, "rules of TLS");
    return 0;
}

int silt_tls_identity_new(silt_slice certificate, silt_slice key, struct silt_tls_identity **ret,
                          struct silt_error *e)
{
    /* Keeps OpenSSL from reading the machine's configuration. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return fail(e, "OpenSSL");
    if (certificate.len > SILT_TLS_PEM_MAX || key.len > SILT_TLS_PEM_MAX)
        return silt_fail(e, SILT_LIMIT, "certificate and key have at most %d bytes each",
                         SILT_TLS_PEM_MAX);
    ERR_clear_error();
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    if (c == NULL)
        return fail(e, "OpenSSL");
    if (set_rules(c, e) < 0 || take_certificate(c, certificate, e) < 0 || take_key(c, key, e) < 0) {
        SSL_CTX_free(c);
        return -1;
    }
    struct silt_tls_identity *i = calloc(1, sizeof(*i));
    if (i == NULL)
        abort();
    i->context = c;
    *ret = i;
    return 0;
}

void silt_tls_identity_free(struct silt_tls_identity *i)
{
    if (i == NULL)
        return;
    SSL_CTX_free(i->context);
    free(i);
}

int64_t silt_tls_identity_until_s(const struct silt_tls_identity *i)
{
    struct tm end;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(i->context)), &end) != 1)
        return 0;
    return timegm(&end);
}

bool silt_tls_identity_is_for(const struct silt_tls_identity *i, const char *host)
{
    return X509_check_host(SSL_CTX_get0_certificate(i->context), host, 0,
                           X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL)
           == 1;
}

static void copy_name(const ASN1_STRING *s, char out[SILT_TLS_NAME_MAX])
{
    size_t len = (size_t)ASN1_STRING_length(s);
    if (len >= SILT_TLS_NAME_MAX)
        return;
    memcpy(out, ASN1_STRING_get0_data(s), len);
    out[len] = 0;
}

/* A wildcard name says more than the other names. */
void silt_tls_identity_name(const struct silt_tls_identity *i, char out[SILT_TLS_NAME_MAX])
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(SSL_CTX_get0_certificate(i->context), NID_subject_alt_name, NULL, NULL);
    out[0] = 0;
    for (int n = 0; n < sk_GENERAL_NAME_num(names); n++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, n);
        if (name->type == GEN_DNS && out[0] != '*'
            && (out[0] == 0 || ASN1_STRING_get0_data(name->d.dNSName)[0] == '*'))
            copy_name(name->d.dNSName, out);
    }
    GENERAL_NAMES_free(names);
}

/* Connections */

struct silt_tls *silt_tls_new(const struct silt_tls_identity *i, struct silt_buf *out)
{
    struct silt_tls *t = calloc(1, sizeof(*t));
    BIO *wire = BIO_new(wire_method());
    if (t == NULL || wire == NULL || (t->ssl = SSL_new(i->context)) == NULL)
        abort();
    t->out = out;
    BIO_set_data(wire, t);
    BIO_set_init(wire, 1);
    SSL_set_bio(t->ssl, wire, wire);
    SSL_set_accept_state(t->ssl);
    return t;
}

static int trust(SSL_CTX *c, const char *host, const char *authorities, struct silt_error *e)
{
    X509_VERIFY_PARAM *p = SSL_CTX_get0_param(c);
    int known = authorities != NULL ? SSL_CTX_load_verify_file(c, authorities)
                                    : SSL_CTX_set_default_verify_paths(c);
    if (known != 1)
        return silt_fail(e, SILT_INVALID, "authorities in %s",
                         authorities != NULL ? authorities : "the files of this machine");
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) != 1
        || (X509_VERIFY_PARAM_set1_ip_asc(p, host) != 1
            && X509_VERIFY_PARAM_set1_host(p, host, 0) != 1))
        return fail(e, "rules of TLS");
    return 0;
}

int silt_tls_dial(const char *host, const char *authorities, struct silt_buf *out,
                  struct silt_tls **ret, struct silt_error *e)
{
    char name[SILT_TLS_NAME_MAX];
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return fail(e, "OpenSSL");
    ERR_clear_error();
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());
    if (c == NULL)
        return fail(e, "OpenSSL");
    if (trust(c, host, authorities, e) < 0) {
        SSL_CTX_free(c);
        return -1;
    }
    const struct silt_tls_identity i = {.context = c};
    struct silt_tls *t = silt_tls_new(&i, out);
    SSL_CTX_free(c); /* the connection keeps it */
    SSL_set_connect_state(t->ssl);
    (void)snprintf(name, sizeof(name), "%s", host);
    (void)SSL_set_tlsext_host_name(t->ssl, name); /* drops a const that clang misses */
    *ret = t;
    return 0;
}

const char *silt_tls_distrust(const struct silt_tls *t)
{
    long why = SSL_get_verify_result(t->ssl);
    return why == X509_V_OK ? NULL : X509_verify_cert_error_string(why);
}

void silt_tls_free(struct silt_tls *t)
{
    if (t == NULL)
        return;
    SSL_free(t->ssl);
    free(t);
}

/* Maps OpenSSL's error to the next state. */
static enum state after(struct silt_tls *t, int result)
{
    int why = SSL_get_error(t->ssl, result);
    if (why == SSL_ERROR_ZERO_RETURN)
        return ENDED;
    if (why == SSL_ERROR_WANT_READ)
        return t->state;
    ERR_clear_error();
    return BROKEN;
}

static size_t read_records(struct silt_tls *t, char *plain, size_t room)
{
    size_t len = 0, n = 0;
    while (len < room) {
        ERR_clear_error();
        int result = SSL_read_ex(t->ssl, plain + len, room - len, &n);
        if (t->state == SHAKING && SSL_is_init_finished(t->ssl))
            t->state = OPEN;
        if (result != 1) {
            t->state = after(t, result);
            break;
        }
        len += n;
    }
    return len;
}

ssize_t silt_tls_read(struct silt_tls *t, silt_slice *wire, char *plain, size_t room)
{
    size_t len = 0;
    if (t->state < ENDED) {
        t->wire = wire;
        len = read_records(t, plain, room);
        t->wire = NULL;
    }
    if (len > 0)
        return (ssize_t)len;
    if (t->state == ENDED)
        return 0;
    errno = t->state == BROKEN || t->out->broken ? EPROTO : EAGAIN;
    return -1;
}

bool silt_tls_has_more(const struct silt_tls *t)
{
    return t->state < ENDED && SSL_has_pending(t->ssl) == 1 && SSL_pending(t->ssl) > 0;
}

int silt_tls_write(struct silt_tls *t, silt_slice plain)
{
    while (plain.len > 0 && t->state != BROKEN) {
        size_t n = 0;
        ERR_clear_error();
        if (SSL_write_ex(t->ssl, plain.data, plain.len < WRITE_PIECE ? plain.len : WRITE_PIECE, &n)
            != 1) {
            ERR_clear_error();
            t->state = BROKEN;
            break;
        }
        plain.data += n;
        plain.len -= n;
    }
    return t->state == BROKEN ? -1 : 0;
}

void silt_tls_end(struct silt_tls *t)
{
    ERR_clear_error();
    if (SSL_is_init_finished(t->ssl) && t->state != BROKEN)
        (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
}

bool silt_tls_is_open(const struct silt_tls *t)
{
    return t->state == OPEN || t->state == ENDED;
}

bool silt_tls_is_broken(const struct silt_tls *t)
{
    return t->state == BROKEN;
}
