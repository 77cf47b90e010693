/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes instead of a handshake, in whatever pieces: it is used up or refused, what is said
 * to it is bounded, and after a refusal nothing is said any more. Then a real client, whose bytes
 * the input spoils: both open or refused. */
#include "http/dev_certificate.h"
#include "fuzz/fuzz.h"
#include "http/tls.h"

#include <errno.h>
#include <openssl/ssl.h>

enum { OUT_MAX = 64 << 10, ROUNDS = 8, ROOM = 16 << 10 };

static struct silt_tls_identity *identity(void)
{
    static struct silt_tls_identity *made;
    struct silt_pem_pair authority, server;
    struct silt_error e;
    if (made != NULL)
        return made;
    silt_pem_pair_init(&authority);
    silt_pem_pair_init(&server);
    demand(silt_dev_certificate_authority("", &authority, &e) == 0
           && silt_dev_certificate_server(&authority, "", &server, &e) == 0);
    demand(silt_tls_identity_new(silt_buf_slice(&server.certificate), silt_buf_slice(&server.key),
                                 &made, &e)
           == 0);
    silt_pem_pair_fini(&authority);
    silt_pem_pair_fini(&server);
    return made;
}

/* All of it; false: refused. */
static bool feed(struct silt_tls *t, struct silt_buf *out, silt_slice wire, size_t room)
{
    static char plain[ROOM];
    for (;;) {
        size_t before = wire.len;
        ssize_t n = silt_tls_read(t, &wire, plain, room);
        demand(n <= (ssize_t)room && wire.len <= before);
        if (n < 0 && errno == EAGAIN) {
            demand(wire.len == 0 && !silt_tls_is_broken(t));
            return true;
        }
        if (n == 0)
            return true;
        if (n < 0) {
            size_t said = out->len;
            demand(errno == EPROTO && silt_tls_write(t, SILT_LIT("x")) < 0);
            silt_tls_end(t);
            demand(silt_tls_read(t, &wire, plain, room) == -1 && errno == EPROTO
                   && out->len == said);
            return false;
        }
    }
}

static void alone(silt_slice bytes, size_t piece)
{
    silt_auto_buf out = {0};
    silt_buf_init(&out, OUT_MAX);
    struct silt_tls *t = silt_tls_new(identity(), &out);
    bool good = true;
    while (bytes.len > 0 && good) {
        size_t n = bytes.len < piece ? bytes.len : piece;
        good = feed(t, &out, (silt_slice){bytes.data, n}, 1 + piece % ROOM);
        bytes.data += n;
        bytes.len -= n;
    }
    demand(!silt_tls_is_open(t) && !out.broken); /* nobody finishes a handshake by chance */
    silt_tls_free(t);
}

/* Each byte of the input is added to one of the client's, that far apart. */
static void spoil(char *wire, size_t len, silt_slice *bytes)
{
    for (size_t at = 0; bytes->len >= 2 && at < len; bytes->data += 2, bytes->len -= 2) {
        at += (unsigned char)bytes->data[0];
        if (at < len)
            wire[at] = (char)(wire[at] + bytes->data[1]);
    }
}

static void with_client(silt_slice bytes)
{
    static char wire[ROOM];
    silt_auto_buf out = {0};
    silt_buf_init(&out, OUT_MAX);
    struct silt_tls *t = silt_tls_new(identity(), &out);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *client = SSL_new(context);
    SSL_set_bio(client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(client);
    bool good = true;
    for (int i = 0; i < ROUNDS && good; i++) {
        if (SSL_do_handshake(client) == 1)
            (void)SSL_write(client, "hello", 5);
        int n = BIO_read(SSL_get_wbio(client), wire, sizeof(wire));
        if (n <= 0)
            break;
        spoil(wire, (size_t)n, &bytes);
        good = feed(t, &out, (silt_slice){wire, (size_t)n}, ROOM);
        (void)BIO_write(SSL_get_rbio(client), out.data, (int)out.len);
        silt_buf_clear(&out);
    }
    demand(!good == silt_tls_is_broken(t));
    SSL_free(client);
    SSL_CTX_free(context);
    silt_tls_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silt_slice bytes = {(const char *)data, size};
    alone(bytes, size > 0 ? 1 + data[0] : 1);
    alone(bytes, size + 1);
    with_client(bytes);
    return 0;
}
